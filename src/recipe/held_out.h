#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

// Which rows of a table are trained on, and which are evaluated.
struct HeldOutSplit {
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> held_out;
};

// Holds out one row in twenty, at random, but always the same ones for a table of that size, whatever the seed of the
// run. Fewer than 20 rows are an Error that names the table, and `flag` as the way to give others.
HeldOutSplit hold_out(std::int64_t num_rows, const std::string& table, const std::string& flag);

// The seed of data that is built in, and of the split. That of a run never changes the data.
inline constexpr std::uint64_t kDataSeed = 42;

// An Error unless `data` is empty or one of the data sets that are built in, such as "builtin:dialogues"; `flag` is the
// one that takes a file.
void check_builtin(const std::string& data, const std::vector<std::string>& builtin, const std::string& flag);

}  // namespace tandem
