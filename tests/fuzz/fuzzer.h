#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct Fuzzing {
  std::string name;                        // of the folder of tests/fuzz/corpus that it starts from
  std::vector<std::string> words;          // that mean something to the parser
  std::function<void(std::string&)> mend;  // makes half of the inputs pass the first check; may be empty

  // Takes the input or throws an Error; throws anything else, or crashes, when the parser is wrong.
  std::function<void(const std::string&)> parse;
};

// Feeds the parser with the corpus, and then with changed inputs, and goes on from those that come to new places of its
// code: 20,000 times, or for ten minutes with TANDEM_SOAK. The test fails with the input that `parse` does not stand;
// an input at which the process dies is in the file fuzz_NAME of the temporary folder.
void fuzz(const Fuzzing& fuzzing);

// Makes `text` all that the file holds. Faster than to open it anew, for which some file systems wait for the disk.
void put(int file, std::string_view text);

}  // namespace tandem
