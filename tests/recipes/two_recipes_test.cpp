#include <gtest/gtest.h>

#include "recipes/points/points.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/train_options.h"

namespace tandem {
namespace {

// Both have TrainOptions, presets, and commands of the same names: each in a namespace of its own.
TEST(Recipes, CanBeLinkedIntoOneProgram) {
  const CommandTable points = points::commands();
  const CommandTable summarize = summarize::commands();
  for (const char* name : {"train", "evaluate", "predict"}) {
    ASSERT_NE(find_command(points, name), nullptr);
    ASSERT_NE(find_command(summarize, name), nullptr);
    EXPECT_NE(find_command(points, name)->about, find_command(summarize, name)->about);
  }
  EXPECT_EQ(summarize::preset_options(summarize::Preset::Demo).optimize.lr, 3e-3);
}

TEST(Recipes, RunTheCommandThatIsNamed) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(find_command(points::commands(), "train")
                ->run({"tandem-points", "train", "--preset", "quick", "--dump-config"}, 2,
                      {"tandem points train", "", "", {}}),
            0);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("\nmax-steps: 20  # "), std::string::npos);
}

}  // namespace
}  // namespace tandem
