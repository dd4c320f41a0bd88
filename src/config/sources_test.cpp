#include <gtest/gtest.h>
#include <tandem/config.h>
#include <tandem/error.h>

#include <cstdint>
#include <optional>

#include "base/error_test.h"
#include "base/temp_test.h"

namespace tandem {
namespace {

using Args = std::vector<std::string>;

struct LifeOptions {
  std::int64_t max_restarts = 0;
  bool keep = false;
};

template <class Visitor>
void visit_fields(LifeOptions& o, Visitor&& field) {
  field("max-restarts,restarts,R", o.max_restarts, "starts after the first");
  field("keep", o.keep, "leave files");
}

void validate(const LifeOptions& o) {
  if (o.max_restarts < 0) fail(ErrorKind::Config, "max-restarts is negative", "try 3");
}

struct JobOptions {
  LifeOptions life;
  std::string name = "job";
  Repeated<std::string> set;
  std::vector<int> ranks;
  std::optional<std::string> note;
};

template <class Visitor>
void visit_fields(JobOptions& o, Visitor&& field) {
  field("", o.life, "life and death");
  field("name", o.name, "its name");
  field("set,x", o.set, "a variable");
  field("ranks", o.ranks, "which ones");
  field("note", o.note, "a remark");
}

const ProgramText kJob{.name = "job",
                       .arguments = "",
                       .about = "A job.",
                       .examples = {},
                       .environment_prefix = "TANDEM_TEST_JOB_",
                       .refused = {{"use-fsdp", "FSDP is out of scope", "run the real tool"}}};

JobOptions load_job(const Args& args) {
  JobOptions options;
  load_config(options, args, kJob);
  return options;
}

// "kind: message | hint" of the Error.
std::string job_failure(const Args& args) {
  const Error error = error_of([&] { load_job(args); });
  return std::string(kind_name(error.kind())) + ": " + error.message() + " | " + error.hint();
}

TEST(Section, WithoutANameKeepsTheNamesOfItsFieldsPlain) {
  EXPECT_EQ(load_job({"--max-restarts", "3"}).life.max_restarts, 3);
  const TempFile file("max_restarts: 4\nkeep: true\n");
  const JobOptions options = load_job({"--config", file.path()});
  EXPECT_EQ(options.life.max_restarts, 4);
  EXPECT_TRUE(options.life.keep);
  EXPECT_EQ(job_failure({"--max-restarts=-1"}), "usage: max-restarts is negative (--max-restarts) | try 3");
}

TEST(Section, IsATitleInHelpAfterThePlainFlags) {
  JobOptions options;
  const Args args = {"--help"};
  const std::string text = load_config(options, args, kJob).text.value();
  const std::size_t flags = text.find("\nflags:\n      --name ");
  const std::size_t section = text.find("\nlife and death:\n  -R, --max-restarts, --restarts");
  ASSERT_NE(flags, std::string::npos) << text;
  ASSERT_NE(section, std::string::npos) << text;
  EXPECT_LT(flags, section);
  EXPECT_TRUE(says(text, {"variable", "TANDEM_TEST_JOB_NAME"}));
}

TEST(Section, IsFlatInTheStoredFile) {
  JobOptions options;
  EXPECT_EQ(config_yaml(fields_of(options)),
            "max-restarts: 0  # default\nkeep: false  # default\nname: \"job\"  # default\nset: []  # default\n"
            "ranks: []  # default\nnote: null  # default\n");
}

TEST(EnvironmentPrefix, PutsVariablesOverTheFileAndFlagsOverVariables) {
  const TempVariable restarts("TANDEM_TEST_JOB_MAX_RESTARTS", "5");
  const TempVariable name("TANDEM_TEST_JOB_NAME", "variable");
  const TempFile file("max-restarts: 4\nname: file\n");
  const JobOptions options = load_job({"--config", file.path(), "--name", "flag"});
  EXPECT_EQ(options.life.max_restarts, 5);
  EXPECT_EQ(options.name, "flag");
}

TEST(EnvironmentPrefix, NamesTheVariableAsTheSource) {
  const TempVariable restarts("TANDEM_TEST_JOB_MAX_RESTARTS", "5");
  JobOptions options;
  EXPECT_EQ(config_table(load_config(options, Args{}, kJob).fields),
            "max-restarts  5  TANDEM_TEST_JOB_MAX_RESTARTS  (default 0)\n");
}

TEST(EnvironmentPrefix, TakesLongAliasesSwitchesAndLists) {
  const TempVariable alias("TANDEM_TEST_JOB_RESTARTS", "6");
  const TempVariable letter("TANDEM_TEST_JOB_R", "7");
  const TempVariable keep("TANDEM_TEST_JOB_KEEP", "1");
  const TempVariable ranks("TANDEM_TEST_JOB_RANKS", "0,11");
  const TempVariable set("TANDEM_TEST_JOB_SET", "A=1,2");
  const JobOptions options = load_job({});
  EXPECT_EQ(options.life.max_restarts, 6);
  EXPECT_TRUE(options.life.keep);
  EXPECT_EQ(options.ranks, (std::vector<int>{0, 11}));
  EXPECT_EQ(options.set.items, Args{"A=1,2"});
  EXPECT_FALSE(load_job({"--no-keep"}).life.keep);
}

TEST(EnvironmentPrefix, NamesTheVariableInErrors) {
  {
    const TempVariable keep("TANDEM_TEST_JOB_KEEP", "maybe");
    EXPECT_TRUE(
        says(job_failure({}), {"config: job: TANDEM_TEST_JOB_KEEP", "'maybe'", "true or false", "default false"}));
  }
  const TempVariable restarts("TANDEM_TEST_JOB_MAX_RESTARTS", "-1");
  EXPECT_EQ(job_failure({}), "config: max-restarts is negative (TANDEM_TEST_JOB_MAX_RESTARTS) | try 3");
}

TEST(EnvironmentPrefix, ThatIsEmptyTakesNoVariable) {
  const TempVariable name("NAME", "variable");
  ProgramText program = kJob;
  program.environment_prefix = "";
  JobOptions options;
  load_config(options, Args{}, program);
  EXPECT_EQ(options.name, "job");
}

TEST(RepeatedFlag, IsOneWholeItemEachTime) {
  EXPECT_EQ(load_job({"-x", "A=1,2", "--set=B=[3]", "--set", ""}).set.items, (Args{"A=1,2", "B=[3]", ""}));
  EXPECT_EQ(load_job({"-x", "[a,b]"}).set.items, Args{"[a,b]"});
  const TempFile list("set: [A=1, \"B=2,3\"]\n");
  EXPECT_EQ(load_job({"--config", list.path()}).set.items, (Args{"A=1", "B=2,3"}));
  EXPECT_EQ(load_job({"--config", list.path(), "-x", "C=3"}).set.items, Args{"C=3"});
}

TEST(RepeatedFlag, IsOneTextOrAListInAFileAndAVariable) {
  const TempFile text("set: A=1,2\n");
  EXPECT_EQ(load_job({"--config", text.path()}).set.items, Args{"A=1,2"});
  const TempVariable list("TANDEM_TEST_JOB_SET", "[A=1, B=2]");
  EXPECT_EQ(load_job({}).set.items, (Args{"A=1", "B=2"}));
}

TEST(Refusal, OfAnUnknownFlagIsASentenceOfItsOwn) {
  EXPECT_EQ(job_failure({"--use_fsdp"}), "usage: job: --use_fsdp: FSDP is out of scope | run the real tool");
  EXPECT_EQ(job_failure({"--use-fsdp-now=3"}), "usage: job: --use-fsdp-now: FSDP is out of scope | run the real tool");
  EXPECT_TRUE(says(job_failure({"--fsdp"}), {"usage: job: ", "--fsdp", "`job --help`"}));
}

TEST(Refusal, OfAKeyIsForOneThatSaysSomething) {
  const std::vector<Refusal> refused = {{"tpu-", "there is no TPU", "use a GPU"}};
  JobOptions options;
  std::vector<Field> fields = fields_of(options);
  const TempFile nothing("tpu_env: []\ntpu_use_sudo: false\ntpu_config: {}\ntpu_name: null\nname: x\n");
  load_yaml(fields, nothing.path(), refused);
  EXPECT_EQ(options.name, "x");
  const TempFile something("name: y\ntpu_zone: here\n");
  JobOptions untouched;
  std::vector<Field> others = fields_of(untouched);
  const Error error = error_of([&] { load_yaml(others, something.path(), refused); });
  EXPECT_EQ(error.message(), something.path() + ":2: tpu-zone: there is no TPU");
}

TEST(Optional, TakesAnEmptyMapForNone) {
  const TempFile file("note: {}\n");
  EXPECT_EQ(load_job({"--config", file.path()}).note, std::nullopt);
  const TempFile wrong("name: {}\n");
  EXPECT_TRUE(says(job_failure({"--config", wrong.path()}), {"config: ", wrong.path(), ":1: name", "mapping"}));
}

}  // namespace
}  // namespace tandem
