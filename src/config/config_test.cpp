#include <gtest/gtest.h>
#include <tandem/config.h>

#include <limits>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "config/sample_config_test.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

using Args = std::vector<std::string>;

SampleConfig load_sample(const Args& args) {
  SampleConfig config;
  load_config(config, args, kSampleProgram);
  return config;
}

Error failure_of(const Args& args) {
  return error_of([&] { load_sample(args); });
}

// The Error for a file with this text, without the file's path at the start of the message.
Error failure_in_file(std::string_view text) {
  const TempFile file(text);
  const Error error = failure_of({"--config", file.path()});
  EXPECT_TRUE(error.message().starts_with(file.path())) << error.message();
  return {error.kind(), error.message().substr(std::min(error.message().size(), file.path().size())), error.hint()};
}

// A value other than the default for every field.
SampleConfig all_changed() {
  return {.batch_size = 16,
          .level = 255,
          .dropout = 0.25F,
          .shuffle = false,
          .name = "a b",
          .data = "/x/y",
          .stop_at = 3600s,
          .memory = {536'870'912},
          .precision = SamplePrecision::Bf16,
          .tags = {"one", "two"},
          .max_steps = 7,
          .note = "hi",
          .optimizer = {.lr = 1e-3, .betas = {0.5, 0.25}, .nesterov = true}};
}

TEST(Config, SetsEveryTypeByFlag) {
  const SampleConfig config = load_sample({"--batch-size",
                                           "16",
                                           "--level=255",
                                           "--dropout",
                                           "0.25",
                                           "--no-shuffle",
                                           "--name",
                                           "a b",
                                           "--data",
                                           "/x/y",
                                           "--stop-at",
                                           "1h",
                                           "--memory",
                                           "512MiB",
                                           "--precision",
                                           "bf16",
                                           "--tags",
                                           "one,two",
                                           "--max-steps",
                                           "7",
                                           "--note",
                                           "hi",
                                           "--optimizer.lr",
                                           "1e-3",
                                           "--optimizer.betas",
                                           "0.5,0.25",
                                           "--optimizer.nesterov"});
  EXPECT_EQ(config, all_changed());
}

TEST(Config, SetsEveryTypeByFile) {
  const TempFile file(R"(# a comment
batch-size: 16
level: 255
dropout: 0.25
shuffle: off
name: "a b"
data: /x/y
stop-at: 1h
memory: 512MiB
precision: bf16
tags: [one, "two, three"]
max-steps: 7
note: none
optimizer:
  lr: 1e-3
  betas:
    - 0.5
    - 0.25
  nesterov: yes
)");
  SampleConfig expected = all_changed();
  expected.tags = {"one", "two, three"};
  expected.note = std::nullopt;
  EXPECT_EQ(load_sample({"--config", file.path()}), expected);
}

TEST(Config, PutsFlagsOverTheFileAndTheFileOverDefaultsWhereverTheyStand) {
  const TempFile file("batch-size: 16\nname: file\n");
  const SampleConfig config = load_sample({"--name", "flag", "--config", file.path()});
  EXPECT_EQ(config.name, "flag");
  EXPECT_EQ(config.batch_size, 16);
  EXPECT_EQ(config.level, 3);
}

TEST(Config, TakesUnderscoresAndShortNamesAndTheLastOfTwoFlags) {
  EXPECT_EQ(load_sample({"--batch_size", "5"}).batch_size, 5);
  EXPECT_EQ(load_sample({"-b", "6"}).batch_size, 6);
  EXPECT_EQ(load_sample({"-b6"}).batch_size, 6);
  EXPECT_EQ(load_sample({"-b", "6", "--batch-size=7"}).batch_size, 7);
  EXPECT_EQ(load_sample({"-b", "-3"}).batch_size, -3);
  const TempFile file("batch_size: 9\n");
  EXPECT_EQ(load_sample({"--config", file.path()}).batch_size, 9);
}

TEST(Config, TakesSwitchesInEverySpelling) {
  EXPECT_FALSE(load_sample({"--no-shuffle"}).shuffle);
  EXPECT_FALSE(load_sample({"--shuffle=false"}).shuffle);
  EXPECT_TRUE(load_sample({"--no-shuffle", "--shuffle"}).shuffle);
  EXPECT_TRUE(load_sample({"--optimizer.nesterov=on"}).optimizer.nesterov);
  EXPECT_FALSE(load_sample({"--no-optimizer.nesterov"}).optimizer.nesterov);
}

TEST(Config, TakesAnEmptyValueAndNotTheNextWord) {
  const SampleConfig config = load_sample({"--name=", "--batch-size", "3", "--tags=", "--note="});
  EXPECT_EQ(config.name, "");
  EXPECT_EQ(config.batch_size, 3);
  EXPECT_EQ(config.tags, std::vector<std::string>());
  EXPECT_EQ(config.note, "");
  EXPECT_EQ(load_sample({"-b=4"}).batch_size, 4);
  EXPECT_EQ(load_sample({"--name", "--batch-size=9"}).name, "--batch-size=9");
  EXPECT_TRUE(says(failure_of({"--batch-size="}).message(), {"sample", "--batch-size", "''", "64-bit"}));
  EXPECT_TRUE(says(failure_of({"--shuffle="}).message(), {"sample", "--shuffle="}));
}

TEST(Config, TakesListsWithCommasInsideAndEmptyLists) {
  EXPECT_EQ(load_sample({"--tags", "[a, \"b,c\"]"}).tags, (std::vector<std::string>{"a", "b,c"}));
  EXPECT_EQ(load_sample({"--tags", ""}).tags, std::vector<std::string>());
  EXPECT_TRUE(says(failure_of({"--tags", "[a,b"}).message(), {"--tags", "'[a,b'", "list"}));
  EXPECT_EQ(load_sample({"--optimizer.betas", "[]"}).optimizer.betas, std::vector<double>());
}

TEST(Config, UnsetsAnOptionalByNone) {
  const TempFile file("max-steps: 5\nnote: \"none\"\n");
  EXPECT_EQ(load_sample({"--config", file.path(), "--max-steps", "none"}).max_steps, std::nullopt);
  EXPECT_EQ(load_sample({"--config", file.path()}).note, "none");
}

TEST(Config, GivesBackTheProgramAndItsArgumentsUntouched) {
  const ProgramText launcher{.name = "run", .arguments = "program", .about = "", .examples = {}};
  SampleConfig config;
  const Args args = {"-b", "2", "./train", "--batch-size", "9", "--", "-x"};
  EXPECT_EQ(load_config(config, args, launcher).rest, (Args{"./train", "--batch-size", "9", "--", "-x"}));
  EXPECT_EQ(config.batch_size, 2);
  const Args dashed = {"-b", "3", "--", "-odd-name", "y"};
  EXPECT_EQ(load_config(config, dashed, launcher).rest, (Args{"-odd-name", "y"}));
}

TEST(Config, NamesTheNearestFlag) {
  const Error failure = failure_of({"--bach-size", "3"});
  EXPECT_EQ(failure.kind(), ErrorKind::Usage);
  EXPECT_TRUE(says(failure.message(), {"sample", "--bach-size"}));
  EXPECT_TRUE(says(failure.hint(), {"--batch-size?"}));
  EXPECT_TRUE(says(failure_of({"--lr=3"}).hint(), {"--optimizer.lr?"}));
  EXPECT_TRUE(says(failure_of({"--nothing-like-it"}).hint(), {"`sample --help`"}));
  EXPECT_TRUE(says(failure_of({"---"}).message(), {"sample", "---"}));
}

TEST(Config, NamesAnInvalidFlagValueAndWhatIsExpected) {
  const Error failure = failure_of({"--optimizer.lr", "fast"});
  EXPECT_EQ(failure.kind(), ErrorKind::Usage);
  EXPECT_TRUE(says(failure.message(), {"sample", "--optimizer.lr", "'fast'", "a number"}));
  EXPECT_TRUE(says(failure.hint(), {"peak learning rate", "3e-04"}));
  EXPECT_TRUE(says(failure_of({"--precision", "fp8"}).message(), {"--precision", "'fp8'", "fp32, bf16, fp16"}));
  EXPECT_TRUE(says(failure_of({"--level", "256"}).message(), {"--level", "'256'", "0 to 255"}));
  EXPECT_TRUE(says(failure_of({"--stop-at", "soon"}).message(), {"--stop-at", "'soon'", "11h30m", "1s"}));
  EXPECT_TRUE(says(failure_of({"--memory", "18G"}).message(), {"--memory", "'18G'", "18GB"}));
  EXPECT_TRUE(says(failure_of({"--shuffle=maybe"}).message(), {"--shuffle", "'maybe'", "true or false"}));
  EXPECT_TRUE(says(failure_of({"--optimizer.betas", "0.9,x"}).message(),
                   {"--optimizer.betas", "'[0.9, x]'", "list", "a number"}));
  EXPECT_TRUE(says(failure_of({"--max-steps", "x"}).message(), {"--max-steps", "'x'", "64-bit", "none"}));
  EXPECT_TRUE(says(failure_of({"--name", "\xFF"}).message(), {"--name", "'?'", "UTF-8"}));
}

TEST(Config, SaysThatAFlagNeedsAValue) {
  EXPECT_TRUE(says(failure_of({"--name"}).message(), {"sample", "--name"}));
  EXPECT_TRUE(says(failure_of({"-b"}).message(), {"sample", "--batch-size"}));
}

TEST(Config, RefusesWordsThatAreNotFlags) {
  EXPECT_TRUE(says(failure_of({"-b", "2", "train"}).message(), {"sample", "'train'"}));
}

TEST(Config, NamesTheNearestKeyAndItsLine) {
  const Error failure = failure_in_file("name: x\noptimizer:\n  l: 3\n  betaz: [1]\n");
  EXPECT_EQ(failure.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(failure.message(), {":3: ", "'optimizer.l'"}));
  EXPECT_TRUE(says(failure.hint(), {"optimizer.lr?"}));
  EXPECT_TRUE(says(failure_in_file("bach-size: 3\n").hint(), {"batch-size?"}));
  EXPECT_TRUE(says(failure_in_file("lr: 3\n").hint(), {"optimizer.lr?"}));
  EXPECT_TRUE(says(failure_in_file("nothing-like-it: 3\n").hint(), {"`--help`"}));
}

TEST(Config, NamesAnInvalidValueInAFileAndItsLine) {
  const Error failure = failure_in_file("\noptimizer:\n  lr: fast\n");
  EXPECT_EQ(failure.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(failure.message(), {":3: ", "optimizer.lr", "'fast'", "a number"}));
  EXPECT_TRUE(says(failure_in_file("batch-size:\n").message(), {":1: ", "batch-size", "64-bit"}));
  EXPECT_TRUE(says(failure_in_file("tags: a\n").message(), {":1: ", "tags", "'a'", "list"}));
  EXPECT_TRUE(says(failure_in_file("batch-size: [1]\n").message(), {":1: ", "batch-size", "'[1]'", "64-bit"}));
}

TEST(Config, RefusesAFileOfTheWrongShape) {
  EXPECT_TRUE(says(failure_in_file("optimizer: 3\n").message(), {":1: ", "optimizer", "section"}));
  EXPECT_TRUE(says(failure_in_file("name: {a: 1}\n").message(), {":1: ", "name", "mapping"}));
  EXPECT_TRUE(says(failure_in_file("tags: [[a]]\n").message(), {":1: ", "tags", "list"}));
  EXPECT_TRUE(says(failure_in_file("name: a\nbatch-size: 1\nname: b\n").message(), {":3: ", "name", ":1"}));
  EXPECT_TRUE(says(failure_in_file("- a\n- b\n").message(), {":1: ", "mapping"}));
  EXPECT_TRUE(says(failure_in_file("? [a, b]\n: c\n").message(), {":1: ", "key"}));
  for (const char* text : {"name: a\n---\nname: b\n", "name: a\n...\nname: b\n", ",name: a\n"}) {
    EXPECT_TRUE(says(failure_in_file(text).message(), {"document"})) << text;
  }
}

TEST(Config, RefusesAFileThatIsNotYaml) {
  EXPECT_TRUE(says(failure_in_file("name: [a\n").message(), {":2: ", "YAML", "end of sequence flow not found"}));
  EXPECT_TRUE(says(failure_in_file("name: a: b\n").message(), {":1: ", "YAML", "illegal map value"}));
  EXPECT_TRUE(says(failure_in_file("name: \"a\nbatch-size: 3\n").message(), {":3: ", "YAML", "illegal EOF in scalar"}));
}

TEST(Config, NamesAFileThatCannotBeRead) {
  const Error failure = failure_of({"--config", "/no/such.yaml"});
  EXPECT_EQ(failure.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(failure.message(), {"/no/such.yaml", "No such file or directory"}));
}

TEST(Config, TakesAnEmptyFile) {
  const TempFile file("# nothing but a comment\n");
  EXPECT_EQ(load_sample({"--config", file.path()}), SampleConfig());
}

TEST(Config, TakesAnEmptySection) {
  const TempFile file("optimizer:\nname: x\n");
  EXPECT_EQ(load_sample({"--config", file.path()}).name, "x");
}

TEST(Config, ValidatesNestedStructsAfterAllIsSet) {
  const Error by_flag = failure_of({"--optimizer.lr", "-1"});
  EXPECT_EQ(by_flag.message(), "optimizer.lr is negative (--optimizer.lr)");
  EXPECT_EQ(by_flag.kind(), ErrorKind::Usage);
  const TempFile file("optimizer: {lr: -1}\n");
  const Error by_file = failure_of({"--config", file.path()});
  EXPECT_EQ(by_file.message(), "optimizer.lr is negative (" + file.path() + ":1)");
  EXPECT_EQ(by_file.kind(), ErrorKind::Config);
  EXPECT_EQ(load_sample({"--config", file.path(), "--optimizer.lr", "1"}).optimizer.lr, 1.0);
}

struct NamesInsideNames {
  std::int64_t n = 1;
  std::int64_t nproc = 1;
};

template <class Visitor>
void visit_fields(NamesInsideNames& o, Visitor&& field) {
  field("n", o.n, "");
  field("nproc", o.nproc, "");
}

void validate(const NamesInsideNames& o) { fail(ErrorKind::Config, "nproc is " + std::to_string(o.nproc), "try 2"); }

TEST(Config, NamesTheSourceOfTheSettingThatIsWrongAndOfNoOther) {
  NamesInsideNames config;
  const Args args = {"-n", "5", "--nproc", "7"};
  EXPECT_EQ(error_of([&] { load_config(config, args, kSampleProgram); }).message(), "nproc is 7 (--nproc)");
}

struct InSection {
  NamesInsideNames section;
};

template <class Visitor>
void visit_fields(InSection& o, Visitor&& field) {
  field("ranks", o.section, "");
}

TEST(Config, NamesTheSourceOfASettingInASection) {
  InSection config;
  const Args args = {"--ranks.nproc", "7"};
  EXPECT_EQ(error_of([&] { load_config(config, args, kSampleProgram); }).message(), "nproc is 7 (--ranks.nproc)");
}

TEST(Config, DumpsEverySettingWithTheSourceOfWhatIsGiven) {
  const TempFile file("optimizer:\n  lr: 1e-3\n");
  SampleConfig config;
  const Args args = {"--config", file.path(), "-b", "16", "--tags", "a,\"b", "--level", "3", "--dump-config"};
  EXPECT_EQ(load_config(config, args, kSampleProgram).text.value(), R"(batch-size: 16  # --batch-size
level: 3  # --level
dropout: 0.1  # default
shuffle: true  # default
name: "run"  # default
data: "data/train.csv"  # default
stop-at: 11h30m  # default
memory: 18GB  # default
precision: fp32  # default
tags: ["a", "\"b"]  # --tags
max-steps: null  # default
note: null  # default
optimizer:
  lr: 0.001  # )" + file.path() + R"(:2
  betas: [0.9, 0.999]  # default
  nesterov: false  # default
)");
}

TEST(Config, ListsWhatIsNotAtItsDefaultInATable) {
  SampleConfig config;
  const Args args = {"-b", "16", "--optimizer.lr", "0.5", "--level", "3"};
  const LoadedConfig loaded = load_config(config, args, kSampleProgram);
  EXPECT_EQ(config_table(loaded.fields),
            "batch-size    16   --batch-size  (default 8)\n"
            "optimizer.lr  0.5  --optimizer.lr  (default 3e-04)\n");
  SampleConfig untouched;
  EXPECT_EQ(config_table(fields_of(untouched)), "");
}

struct Unnamed {
  std::string name;
};

template <class Visitor>
void visit_fields(Unnamed& o, Visitor&& field) {
  field("name", o.name, "of the run");
}

TEST(Config, SaysThatADefaultIsEmpty) {
  Unnamed config;
  const Args args = {"--name", "a"};
  EXPECT_EQ(config_table(load_config(config, args, kSampleProgram).fields), "name  a  --name  (default: empty)\n");
}

TEST(Config, StoredAndLoadedAgainIsTheSameToTheBit) {
  SampleConfig config{.batch_size = std::numeric_limits<std::int64_t>::min(),
                      .dropout = 1.0F / 3.0F,
                      .name = "quote \" back \\ tab \t line \n colon: # \xE4\xB8\xAD \x01 \x7F \xC2\x85 none",
                      .data = "~",
                      .stop_at = 1s,
                      .memory = {std::numeric_limits<std::uint64_t>::max()},
                      .precision = SamplePrecision::Fp16,
                      .tags = {"", "null", "[x]", "- y", " lead"},
                      .max_steps = 0,
                      .note = "none",
                      .optimizer = {.lr = 5e-324, .betas = {-0.0, 1e308}, .nesterov = true}};
  const TempFile file(config_yaml(fields_of(config)));
  EXPECT_EQ(load_sample({"--config", file.path()}), config);
}

TEST(Config, PrintsHelpWithExamplesFirstAndEveryFlagWithItsDefault) {
  const ProgramText program{.name = "sample", .arguments = "", .about = "Learns.", .examples = {"sample -b 2"}};
  SampleConfig config;
  const Args args = {"--help"};
  const std::string text = load_config(config, args, program).text.value();
  EXPECT_EQ(text.find("usage: sample [flags]\n\nLearns.\n\nexamples:\n  sample -b 2\n\nflags:\n"), 0U) << text;
  EXPECT_NE(text.find("  -b, --batch-size              samples in a micro-batch (a 64-bit integer; default 8)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("(on; --no-shuffle turns it off)"), std::string::npos) << text;
  EXPECT_NE(text.find("\noptimizer:\n      --optimizer.lr "), std::string::npos) << text;
  EXPECT_NE(text.find("--config"), std::string::npos) << text;
  for (const std::size_t line_end : {text.find('\n')}) EXPECT_LE(line_end, 96U);
}

struct OddNames {
  std::int64_t under_score = 1;
  std::int64_t k = 2;
  std::int64_t alias = 3;
  std::optional<bool> maybe;
};

template <class Visitor>
void visit_fields(OddNames& o, Visitor&& field) {
  field("under_score", o.under_score, "");
  field("k", o.k, "");
  field("alias,other-name", o.alias, "");
  field("maybe", o.maybe, "");
}

TEST(Config, StoresAndLoadsNamesWithUnderscoresAndOneLetterAndAliases) {
  OddNames stored{.under_score = 10, .k = 20, .alias = 30, .maybe = false};
  const TempFile file(config_yaml(fields_of(stored)));
  OddNames loaded;
  const Args args = {"--config", file.path()};
  load_config(loaded, args, kSampleProgram);
  EXPECT_EQ(loaded.under_score, 10);
  EXPECT_EQ(loaded.k, 20);
  EXPECT_EQ(loaded.alias, 30);
  EXPECT_EQ(loaded.maybe, false);
  const Args flags = {"--under-score", "1", "--other-name=4", "-k", "5", "--maybe", "none"};
  load_config(loaded, flags, kSampleProgram);
  EXPECT_EQ(loaded.under_score, 1);
  EXPECT_EQ(loaded.alias, 4);
  EXPECT_EQ(loaded.k, 5);
  EXPECT_EQ(loaded.maybe, std::nullopt);
}

TEST(Config, ShowsInHelpTheFlagsThatAreTaken) {
  OddNames config;
  const Args args = {"--help"};
  const std::string text = load_config(config, args, kSampleProgram).text.value();
  EXPECT_NE(text.find("\n  -k "), std::string::npos) << text;
  EXPECT_NE(text.find("\n      --alias, --other-name "), std::string::npos) << text;
  EXPECT_NE(text.find("\n      --under-score "), std::string::npos) << text;
}

TEST(Config, TakesALongAliasAsAKey) {
  const TempFile file("other_name: 7\n");
  OddNames config;
  const Args args = {"--config", file.path()};
  load_config(config, args, kSampleProgram);
  EXPECT_EQ(config.alias, 7);
}

struct SameShortName {
  std::int64_t first = 1;
  std::int64_t second = 2;
};

template <class Visitor>
void visit_fields(SameShortName& o, Visitor&& field) {
  field("first,x", o.first, "");
  field("second,x", o.second, "");
}

TEST(Config, RefusesTwoSettingsWithOneFlag) {
  SameShortName config;
  const Error error = error_of([&] { load_config(config, Args(), kSampleProgram); });
  EXPECT_EQ(error.kind(), ErrorKind::Internal);
  EXPECT_TRUE(says(error.message(), {"sample", "-x"}));
}

TEST(Config, PrintsHelpEvenWhereDefaultsAreNotValid) {
  SampleConfig config;
  config.optimizer.lr = -1;
  const Args args = {"--help"};
  EXPECT_TRUE(load_config(config, args, kSampleProgram).text.has_value());
}

}  // namespace
}  // namespace tandem
