#pragma once

#include <string>

namespace tandem {

// The stem of a word of lower-case letters and digits: Porter's algorithm with NLTK's default extensions, as used by
// rouge-score. "meetings" gives "meet", "happily" gives "happili".
std::string stem(std::string word);

}  // namespace tandem
