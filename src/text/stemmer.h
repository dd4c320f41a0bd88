#pragma once

#include <string>

namespace tandem {

// The stem of a word of lower-case letters and digits: Porter's algorithm with the changes that NLTK's PorterStemmer
// makes to it by default, and that rouge-score therefore uses. "meetings" gives "meet", "happily" "happili".
std::string stem(std::string word);

}  // namespace tandem
