#pragma once

#include <gtest/gtest.h>

#include <filesystem>

namespace tandem {

// A test that needs a GPU, and says so where there is none.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "not run: needs a GPU";
  }
};

}  // namespace tandem
