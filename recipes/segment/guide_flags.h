#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem::segment {

// Flags of the guide's train.py that have another name or form here; docs/segment.md lists them all. Returns the
// command line with ours in their place: "--batchsize 8" becomes "--batch-size 8", "--distributed" is left out. A value
// that cannot be honoured ("--dist_url tcp://..."), and two that ask for different numbers of ranks, are an Error.
// `launched_ranks`: the world size if a launcher started this process.
std::vector<std::string> translate_guide_flags(const std::vector<std::string>& words, std::size_t first_flag,
                                               std::optional<std::int64_t> launched_ranks);

// torch.distributed.launch without --use_env puts its --local-rank before everything else: "tandem-segment
// --local-rank=0 train" becomes "tandem-segment train --local-rank=0".
std::vector<std::string> command_first(std::vector<std::string> words);

// The lines of `--help` about them.
std::string guide_flags_help();

}  // namespace tandem::segment
