#pragma once

#include <string_view>

#include "text/vocabulary.h"

namespace tandem {

// An Error of kind Data that begins with `where` unless this is the vocabulary of a byte-level BPE: a token for each
// byte, merges of tokens that fit together, none of them twice, and no token that neither is special nor made by one.
void check_vocabulary(const Vocabulary& vocabulary, std::string_view where);

}  // namespace tandem
