#pragma once

#include <string_view>

#include "text/vocabulary.h"

namespace tandem {

// Throws an Error of kind Data that starts with `where` unless this is a valid byte-level BPE: a token for each byte,
// valid and unique merges, and every other token special or produced by a merge.
void check_vocabulary(const Vocabulary& vocabulary, std::string_view where);

}  // namespace tandem
