#include "train/resume.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using From = ResumeRequest::From;

TEST(Resume, IsReadFromItsText) {
  EXPECT_EQ(parse_resume("auto").from, From::Auto);
  EXPECT_EQ(parse_resume("latest").from, From::Latest);
  EXPECT_EQ(parse_resume("no").from, From::Nothing);
  EXPECT_EQ(parse_resume("weights").from, From::LatestWeights);
  EXPECT_EQ(parse_resume("weights:runs/a").from, From::Weights);
  EXPECT_EQ(parse_resume("weights:runs/a").path, "runs/a");
  EXPECT_EQ(parse_resume("runs/no").from, From::Path);
  EXPECT_EQ(parse_resume("runs/no").path, "runs/no");
}

TEST(Resume, IsANewRunUnlessItGoesOn) {
  EXPECT_TRUE(parse_resume("no").is_new_run());
  EXPECT_TRUE(parse_resume("weights:a").is_new_run());
  EXPECT_FALSE(parse_resume("auto").is_new_run());
  EXPECT_FALSE(parse_resume("a").is_new_run());
}

TEST(Resume, IsWrittenAsItIsRead) {
  for (const char* text : {"auto", "latest", "no", "weights", "weights:a/b", "a/b"}) {
    EXPECT_EQ(resume_text(parse_resume(text)), text);
  }
}

}  // namespace
}  // namespace tandem
