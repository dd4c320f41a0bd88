#pragma once

#include <string>
#include <vector>

namespace tandem::segment {

// Flags of the guide's train.py that have another name or form here; docs/segment.md lists them all. Returns the
// command line with ours in their place: "--batchsize 8" becomes "--batch-size 8", "--distributed" is left out. A value
// that cannot be honoured ("--dist_url tcp://...") is an Error. `is_worker`: started by a launcher.
std::vector<std::string> translate_guide_flags(const std::vector<std::string>& words, std::size_t first_flag,
                                               bool is_worker);

}  // namespace tandem::segment
