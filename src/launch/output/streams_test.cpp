#include "launch/output/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct LogDirCase {
  std::string_view name;
  std::map<std::string, std::string> variables;
  std::optional<fs::path> flag;
  std::string expected;  // WORKING stands for the folder that Kaggle keeps
};

TEST(LogDir, IsOneThatLastsOnKaggle) {
  const fs::path working = fs::path(testing::TempDir()) / str("tandem_working_", ::getpid());
  fs::create_directories(working);
  LaunchPlan plan;
  plan.name = "train-4f7a2c";
  plan.env.run_id = "study";
  const std::map<std::string, std::string> kaggle = {{"KAGGLE_KERNEL_RUN_TYPE", "Batch"}};
  const std::vector<LogDirCase> cases = {
      {"Kaggle", kaggle, {}, "WORKING/tandem-logs/train-4f7a2c"},
      {"elsewhere", {}, {}, ""},
      {"chosen state folder", {{"KAGGLE_KERNEL_RUN_TYPE", "Batch"}, {"TANDEM_STATE_DIR", "/tmp/state"}}, {}, ""},
      {"run folder", {{"KAGGLE_KERNEL_RUN_TYPE", "Batch"}, {"TANDEM_LOG_DIR", "/tmp/logs"}}, {}, "/tmp/logs"},
      {"flag", kaggle, "/tmp/logs", "/tmp/logs/study_4f7a2c"},
      {"no logs", kaggle, "/dev/null", "/dev/null"},
  };
  for (const LogDirCase& one : cases) {
    StreamOptions options;
    options.log_dir = one.flag;
    const Lookup lookup = [&](const std::string& name) {
      const auto found = one.variables.find(name);
      return found == one.variables.end() ? std::nullopt : std::optional(found->second);
    };
    const std::string expected = replace_all(one.expected, "WORKING", working.string());
    EXPECT_EQ(chosen_log_dir(options, plan, lookup, working), expected) << one.name;
    const fs::path without = chosen_log_dir(options, plan, lookup, working / "not there");
    EXPECT_EQ(without, one.name == "Kaggle" ? "" : expected) << one.name;
  }
  fs::remove_all(working);
}

}  // namespace
}  // namespace tandem
