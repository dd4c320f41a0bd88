#include "text/stemmer.h"

#include <gtest/gtest.h>

#include <map>

namespace tandem {
namespace {

// The results of PorterStemmer in NLTK 3.9.
TEST(Stem, IsThatOfNltk) {
  const std::map<std::string, std::string> stems{{"generalizations", "gener"},
                                                 {"oscillators", "oscil"},
                                                 {"universities", "univers"},
                                                 {"happily", "happili"},
                                                 {"hopefully", "hope"},
                                                 {"digitizer", "digit"},
                                                 {"conformably", "conform"},
                                                 {"radically", "radic"},
                                                 {"sensibility", "sensibl"},
                                                 {"theology", "theolog"},
                                                 {"apology", "apolog"},
                                                 {"agreed", "agre"},
                                                 {"dying", "die"},
                                                 {"spied", "spi"},
                                                 {"died", "die"},
                                                 {"fully", "fulli"},
                                                 {"meetings", "meet"},
                                                 {"package2s", "package2"},
                                                 {"skies", "sky"},
                                                 {"news", "news"},
                                                 {"hopping", "hop"},
                                                 {"filing", "file"},
                                                 {"falling", "fall"},
                                                 {"enjoy", "enjoy"},
                                                 {"spy", "spi"},
                                                 {"controlled", "control"},
                                                 {"adoption", "adopt"},
                                                 {"rebellion", "rebellion"},
                                                 {"decision", "decis"},
                                                 {"syzygy", "syzygi"},
                                                 {"yyyying", "yyyi"},
                                                 {"ties", "tie"},
                                                 {"feed", "feed"},
                                                 {"used", "use"},
                                                 {"2nd", "2nd"},
                                                 {"as", "as"},
                                                 {"", ""}};
  for (const auto& [word, expected] : stems) EXPECT_EQ(stem(word), expected) << word;
}

}  // namespace
}  // namespace tandem
