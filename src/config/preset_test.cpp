#include <gtest/gtest.h>
#include <tandem/config.h>

#include <cstdint>

#include "base/error_test.h"
#include "base/temp_test.h"

namespace tandem {
namespace {

using Args = std::vector<std::string>;

enum class Size { None, Small, Large };

std::vector<std::pair<std::string, Size>> enum_names(Size) {
  return {{"none", Size::None}, {"small", Size::Small}, {"large", Size::Large}};
}

struct NetOptions {
  std::int64_t width = 64;
  std::int64_t depth = 4;
};

template <class Visitor>
void visit_fields(NetOptions& o, Visitor&& field) {
  field("width", o.width, "channels");
  field("depth", o.depth, "layers");
}

struct SizedOptions {
  Size preset = Size::None;
  NetOptions net;
  double lr = 0.5;
};

// The preset comes last: the order of fields does not matter.
template <class Visitor>
void visit_fields(SizedOptions& o, Visitor&& field) {
  field("", o.net, "net");
  field("lr", o.lr, "learning rate");
  field("preset", o.preset, "set of defaults");
}

SizedOptions preset_options(Size size) {
  SizedOptions options;
  if (size == Size::Small) options.net = {.width = 8, .depth = 2};
  if (size == Size::Large) options.net.width = 1024;
  return options;
}

const ProgramText kProgram{.name = "sized",
                           .arguments = "",
                           .about = "Has presets.",
                           .examples = {},
                           .environment_prefix = "TANDEM_TEST_SIZED_"};

LoadedConfig load_sized(SizedOptions& options, const Args& args) { return load_config(options, args, kProgram); }

TEST(Preset, ChangesDefaultsThatFileAndFlagsOverride) {
  const TempFile file("depth: 3\nlr: 0.25\npreset: large\n");  // the preset below what overrides it
  SizedOptions options;
  load_sized(options, {"--width", "9", "--config", file.path(), "--preset", "small", "--lr", "0.125"});
  EXPECT_EQ(options.preset, Size::Small);  // the flag wins over the file
  EXPECT_EQ(options.net.width, 9);
  EXPECT_EQ(options.net.depth, 3);
  EXPECT_EQ(options.lr, 0.125);
}

TEST(Preset, IsTakenFromTheFileOrTheEnvironment) {
  const TempFile file("depth: 3\npreset: small\n");
  SizedOptions by_file;
  load_sized(by_file, {"--config", file.path()});
  EXPECT_EQ(by_file.net.width, 8);
  EXPECT_EQ(by_file.net.depth, 3);

  const TempVariable variable("TANDEM_TEST_SIZED_PRESET", "large");
  SizedOptions by_environment;
  load_sized(by_environment, {"--config", file.path()});
  EXPECT_EQ(by_environment.preset, Size::Large);
  EXPECT_EQ(by_environment.net.width, 1024);
  EXPECT_EQ(by_environment.net.depth, 3);
}

TEST(Preset, LeavesWhatTheProgramSetIfNoneIsChosen) {
  SizedOptions options;
  options.lr = 7;
  load_sized(options, {});
  EXPECT_EQ(options.lr, 7);
  EXPECT_EQ(options.net.width, 64);
}

TEST(Preset, GivesTheDefaultsOfTableAndHelp) {
  SizedOptions options;
  const LoadedConfig loaded = load_sized(options, {"--preset", "small", "--depth", "5"});
  EXPECT_EQ(config_table(loaded.fields),
            "depth   5      --depth  (default 2)\n"
            "preset  small  --preset  (default none)\n");
  SizedOptions shown;
  const std::string help = *load_sized(shown, {"--help", "--preset", "large"}).text;
  EXPECT_NE(help.find("default 1024)"), std::string::npos) << help;
}

TEST(Preset, IsStoredWithAllItsValues) {
  SizedOptions options;
  const TempFile stored(*load_sized(options, {"--preset", "small", "--lr", "2", "--dump-config"}).text);
  SizedOptions again;
  load_sized(again, {"--config", stored.path()});
  EXPECT_EQ(again.preset, Size::Small);
  EXPECT_EQ(again.net.depth, 2);
  EXPECT_EQ(again.lr, 2);
}

TEST(Preset, ThatIsUnknownIsAnErrorWithTheNearestOne) {
  SizedOptions options;
  const Error flag = error_of([&] { load_sized(options, {"--preset", "smal", "--no-such-flag=1"}); });
  EXPECT_EQ(flag.kind(), ErrorKind::Usage);  // the flag that does not exist, before anything is set
  const Error typo = error_of([&] { load_sized(options, {"--preset", "smal"}); });
  EXPECT_EQ(typo.kind(), ErrorKind::Usage);
  EXPECT_NE(typo.message().find("'smal'"), std::string::npos) << typo.message();
  EXPECT_EQ(typo.hint(), "did you mean small?");
  const TempFile file("lr: 1\npreset: larg\n");
  const Error in_file = error_of([&] { load_sized(options, {"--config", file.path()}); });
  EXPECT_EQ(in_file.kind(), ErrorKind::Config);
  EXPECT_NE(in_file.message().find(file.path() + ":2"), std::string::npos) << in_file.message();
  EXPECT_EQ(in_file.hint(), "did you mean large?");
  EXPECT_NE(error_of([&] {
              load_sized(options, {"--preset", "xyzzy"});
            })
                .message()
                .find("small, large"),
            std::string::npos);
}

TEST(Flags, MayFollowTheArgumentsWhereTheProgramSaysSo) {
  const ProgramText anywhere{.name = "score", .arguments = "file", .about = "", .examples = {}, .flags_anywhere = true};
  const TempFile file("width: 3\ndepth: 3\n");
  NetOptions options;
  const LoadedConfig loaded =
      load_config(options, Args{"--width", "5", "a.csv", "--depth", "6", "b.csv", "--config", file.path()}, anywhere);
  EXPECT_EQ(loaded.rest, (Args{"a.csv", "b.csv"}));
  EXPECT_EQ(options.width, 5);  // the flag wins, wherever the file is named
  EXPECT_EQ(options.depth, 6);
  load_config(options, Args{"--width", "5", "a.csv", "--width", "7"}, anywhere);
  EXPECT_EQ(options.width, 7);
  EXPECT_EQ(error_of([&] {
              load_config(options, Args{"a.csv", "--widht", "5"}, anywhere);
            }).hint(),
            "did you mean --width?");
}

}  // namespace
}  // namespace tandem
