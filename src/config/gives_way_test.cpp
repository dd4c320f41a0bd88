#include <gtest/gtest.h>
#include <tandem/config.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/error_test.h"
#include "base/temp_test.h"

namespace tandem {
namespace {

using Args = std::vector<std::string>;

enum class Plan { None, Small };

std::vector<std::pair<std::string, Plan>> enum_names(Plan) { return {{"none", Plan::None}, {"small", Plan::Small}}; }

struct PlannedOptions {
  Plan preset = Plan::None;
  std::optional<std::int64_t> global_batch = {};
  std::optional<std::int64_t> shards = {};
  std::string init = {};
  double lr = 0.5;
  int layers = 12;
  std::int64_t warmup = 0;
  std::string tokenizer = {};
  std::int64_t vocabulary = 1000;
};

template <class Visitor>
void visit_fields(PlannedOptions& o, Visitor&& field) {
  field("preset", o.preset, "set of defaults");
  field("global-batch", o.global_batch, "samples a step");
  field("shards", o.shards, "micro-batches a step");
  field("init", o.init, "weights");
  field("lr", o.lr, "learning rate");
  field("layers", o.layers, "of the model");
  field("warmup", o.warmup, "steps");
  field("tokenizer", o.tokenizer, "folder");
  field("vocabulary", o.vocabulary, "tokens");
}

std::vector<GivesWay> gives_way(const PlannedOptions&) {
  return {{.name = "global-batch", .to = {"shards"}},
          {.name = "lr", .to = {"init"}},
          {.name = "layers", .to = {"init"}, .decides = true},
          {.name = "vocabulary", .to = {"tokenizer"}, .if_both = "leave out --vocabulary"}};
}

PlannedOptions preset_options(Plan plan) {
  PlannedOptions options;
  if (plan == Plan::Small) {
    options.global_batch = 32;
    options.lr = 2;
    options.layers = 4;
    options.warmup = 50;
    options.vocabulary = 300;
  }
  return options;
}

const ProgramText kPlanned{.name = "planned", .arguments = "", .about = "Has presets.", .examples = {}};

LoadedConfig load_planned(PlannedOptions& options, const Args& args, const FindEarlier& earlier = {}) {
  return load_fields(
      fields_of(options), args, kPlanned, [] {}, earlier);
}

const Field& planned_field(const LoadedConfig& loaded, const std::string& name) {
  return *std::ranges::find(loaded.fields, name, &Field::name);
}

TEST(GivesWay, ValueOfAPresetToAFlagAndTheTableSaysSo) {
  PlannedOptions options;
  const LoadedConfig loaded = load_planned(options, {"--preset", "small", "--shards", "4"});
  EXPECT_EQ(options.global_batch, std::nullopt);
  EXPECT_EQ(options.warmup, 50);
  EXPECT_EQ(config_table(loaded.fields),
            "preset        small  --preset  (default none)\n"
            "global-batch  none   gives way to --shards  (default 32)\n"
            "shards        4      --shards  (default none)\n");
}

TEST(GivesWay, NotIfItWasGivenItselfNorToNothing) {
  for (const Args& args : {Args{"--preset", "small", "--shards", "4", "--global-batch", "32"},
                           Args{"--preset", "small", "--shards", "none"}, Args{"--preset", "small"}}) {
    PlannedOptions options;
    load_planned(options, args);
    EXPECT_EQ(options.global_batch, 32) << args.back();
  }
}

TEST(GivesWay, AlsoIfThePresetComesFromAStoredFileThatHasAllSettings) {
  PlannedOptions options;
  const TempFile stored(*load_planned(options, {"--preset", "small", "--dump-config"}).text);
  PlannedOptions again;
  load_planned(again, {"--config", stored.path(), "--shards", "4"});
  EXPECT_EQ(again.global_batch, std::nullopt);
  const TempFile other("preset: small\nglobal-batch: 64\n");
  PlannedOptions given;
  load_planned(given, {"--config", other.path(), "--shards", "4"});
  EXPECT_EQ(given.global_batch, 64);
}

TEST(GivesWay, OrIsRefusedIfBothAreGivenAndExcludeEachOther) {
  for (const char* size : {"300", "1000", "77"}) {  // also the value of the preset, and the default
    PlannedOptions both;
    const Error error = error_of([&] {
      load_planned(both, {"--preset", "small", "--tokenizer", "t", "--vocabulary", size});
    });
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
    EXPECT_TRUE(says(error.message(), {"--vocabulary", "--tokenizer"})) << error.message();
    EXPECT_EQ(error.hint(), "leave out --vocabulary");
  }
  PlannedOptions options;
  load_planned(options, {"--preset", "small", "--tokenizer", "t"});
  EXPECT_EQ(options.vocabulary, 1000);
  const TempFile own("tokenizer: t\nvocabulary: 1000\n");
  PlannedOptions in_file;
  EXPECT_EQ(error_of([&] { load_planned(in_file, {"--config", own.path()}); }).kind(), ErrorKind::Usage);
  const TempFile stored("tokenizer: t\nvocabulary: 1000  # default\n");
  PlannedOptions again;
  load_planned(again, {"--config", stored.path()});
}

TEST(GivesWay, WhatAFileGivesNotAlsoIfItIsTheValueOfThePreset) {
  const TempFile file("preset: small\nglobal-batch: 32\n");
  PlannedOptions options;
  const LoadedConfig loaded = load_planned(options, {"--config", file.path(), "--shards", "4"});
  EXPECT_EQ(options.global_batch, 32);
  EXPECT_FALSE(planned_field(loaded, "global-batch").is_proposed());
}

TEST(GivesWay, AndTheTableNamesTheSettingThatDecidesInPlaceOfAValueThatIsNotUsed) {
  PlannedOptions options;
  const LoadedConfig loaded = load_planned(options, {"--preset", "small", "--init", "w"});
  EXPECT_EQ(config_table(loaded.fields),
            "preset  small      --preset  (default none)\n"
            "init    w          --init  (default: empty)\n"
            "lr      0.5        gives way to --init  (default 2)\n"
            "layers  of --init  gives way to --init  (default 4)\n");
}

TEST(Proposed, IsWhatAPresetChoseAndNobodyGave) {
  PlannedOptions options;
  const LoadedConfig loaded = load_planned(options, {"--preset", "small", "--global-batch", "32"});
  EXPECT_TRUE(planned_field(loaded, "warmup").is_proposed());
  EXPECT_FALSE(planned_field(loaded, "global-batch").is_proposed());  // given, if only with the same value
  EXPECT_FALSE(planned_field(loaded, "shards").is_proposed());
}

TEST(EarlierSettings, ComeBeforeFileAndFlagsAndLeaveOutWhatBelongsToThatStart) {
  const TempFile earlier("preset: small\nwarmup: 7\nvocabulary: 77\ntokenizer: old\n");
  const TempFile file("vocabulary: 99\n");
  std::string asked;
  const auto find = [&](std::span<const Field> given) -> std::optional<EarlierSettings> {
    for (const Field& field : given) {
      if (field.is_given) asked += field.name + " ";
    }
    return EarlierSettings{earlier.path(), {"tokenizer"}};
  };
  PlannedOptions options;
  const LoadedConfig loaded = load_planned(options, {"--config", file.path(), "--shards", "4"}, find);
  EXPECT_EQ(asked, "shards vocabulary ");
  EXPECT_EQ(options.preset, Plan::Small);
  EXPECT_EQ(options.warmup, 7);
  EXPECT_EQ(options.vocabulary, 99);
  EXPECT_EQ(options.tokenizer, "");
  EXPECT_EQ(options.global_batch, std::nullopt);  // of the earlier preset: it gives way, too
  EXPECT_EQ(planned_field(loaded, "warmup").source, earlier.path() + ":2");
  EXPECT_FALSE(planned_field(loaded, "warmup").is_proposed());
}

// Starts with `args`, then again twice with the settings of the start before, the last time also with `more`.
PlannedOptions resumed(const Args& args, const Args& more, std::vector<std::string>& proposed) {
  PlannedOptions first;
  const TempFile stored(config_yaml(load_planned(first, args).fields));
  PlannedOptions second;
  const auto earlier = [&](auto) { return EarlierSettings{stored.path()}; };
  const TempFile stored_again(config_yaml(load_planned(second, {}, earlier).fields));
  PlannedOptions third;
  const LoadedConfig loaded = load_planned(third, more, [&](auto) { return EarlierSettings{stored_again.path()}; });
  for (const Field& field : loaded.fields) {
    if (field.is_proposed()) proposed.push_back(field.name);
  }
  return third;
}

TEST(EarlierSettings, ThatWereGivenStayAndOnlyThoseOfThePresetAreProposedAgain) {
  std::vector<std::string> proposed;
  const PlannedOptions kept = resumed(
      {"--preset", "small", "--init", "w", "--lr", "3", "--global-batch", "32", "--warmup", "50"}, {}, proposed);
  EXPECT_EQ(kept.lr, 3);
  EXPECT_EQ(kept.layers, 12);
  EXPECT_EQ(kept.global_batch, 32);
  EXPECT_EQ(proposed, Args{"vocabulary"});

  EXPECT_EQ(resumed({"--init", "w", "--lr", "3"}, {}, proposed).lr, 3);
  EXPECT_EQ(resumed({"--init", "w", "--lr", "3"}, {"--init", "v"}, proposed).lr, 3);
  EXPECT_EQ(resumed({"--preset", "small"}, {"--shards", "4"}, proposed).global_batch, std::nullopt);
  EXPECT_EQ(resumed({"--preset", "small", "--shards", "4"}, {}, proposed).global_batch, std::nullopt);
  EXPECT_EQ(resumed({"--preset", "small", "--tokenizer", "t"}, {}, proposed).vocabulary, 1000);
}

TEST(EarlierSettings, OfWhichThereAreNoneChangeNothing) {
  PlannedOptions options;
  load_planned(options, {"--preset", "small"}, [](auto) { return std::nullopt; });
  EXPECT_EQ(options.warmup, 50);
}

}  // namespace
}  // namespace tandem
