#include "recipe/held_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error_test.h"

namespace tandem {
namespace {

TEST(HeldOut, IsOneRowInTwentyAndEveryRowIsUsedOnce) {
  for (const auto& [size, num_held_out] : {std::pair{20, 1}, {39, 1}, {40, 2}, {1000, 50}}) {
    const HeldOutSplit split = hold_out(size, "t.csv", "--valid");
    EXPECT_EQ(std::ssize(split.held_out), num_held_out) << size;
    std::vector<std::int64_t> all = split.train;
    all.insert(all.end(), split.held_out.begin(), split.held_out.end());
    EXPECT_FALSE(std::ranges::is_sorted(all)) << size;
    std::ranges::sort(all);
    std::vector<std::int64_t> each(size);
    std::iota(each.begin(), each.end(), 0);
    EXPECT_EQ(all, each);
  }
}

TEST(HeldOut, IsAlwaysTheSame) {
  EXPECT_EQ(hold_out(100, "a", "--valid").held_out, hold_out(100, "b", "--valid").held_out);
}

TEST(HeldOut, NeedsTwentyRows) {
  const Error error = error_of([] { hold_out(19, "t.csv", "--valid"); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_NE(error.message().find("t.csv has 19 rows"), std::string::npos);
  EXPECT_NE(error.hint().find("--valid"), std::string::npos);
}

TEST(Builtin, DataIsKnownByName) {
  check_builtin("", {"builtin:a"}, "--train");
  check_builtin("builtin:a", {"builtin:a", "builtin:b"}, "--train");
  const Error error = error_of([] { check_builtin("builtin:c", {"builtin:a", "builtin:b"}, "--train"); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_EQ(error.hint(), "give builtin:a or builtin:b; a file is --train");
}

}  // namespace
}  // namespace tandem
