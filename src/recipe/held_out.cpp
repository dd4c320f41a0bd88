#include "recipe/held_out.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/text.h"
#include "data/permutation.h"

namespace tandem {

HeldOutSplit hold_out(std::int64_t num_rows, const std::string& table, const std::string& flag) {
  constexpr std::int64_t kHeldOutEvery = 20;
  if (num_rows < kHeldOutEvery) {
    fail(ErrorKind::Data, str(table, " has ", num_rows, num_rows == 1 ? " row" : " rows", ", too few to hold some out"),
         str("give a validation file with ", flag));
  }
  const std::int64_t num_train = num_rows - num_rows / kHeldOutEvery;
  const Permutation order(num_rows, kDataSeed, 0);
  HeldOutSplit split;
  for (std::int64_t i = 0; i < num_rows; ++i) (i < num_train ? split.train : split.held_out).push_back(order[i]);
  return split;
}

void check_builtin(const std::string& data, const std::vector<std::string>& builtin, const std::string& flag) {
  if (data.empty() || std::ranges::count(builtin, data) > 0) return;
  fail(ErrorKind::Config, str("data is '", data, "'"), str("give ", join(builtin, " or "), "; a file is ", flag));
}

}  // namespace tandem
