#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/fd.h"
#include "text/tokenizer.h"
#include "text/train_vocabulary.h"

// Texts and ids (32 bits each) go through the standard streams, whole.
//
//   tokenize encode FOLDER     text to ids, special tokens recognised; encode-as-text: taken for text
//   tokenize decode FOLDER     ids to text
//   tokenize save FROM TO      reads a tokenizer and writes it into another folder
//   tokenize train SIZE TO     trains one with the text, every pair that is seen once
int main(int, char** argv) {
  using tandem::Tokenizer;
  const std::string command = argv[1];
  if (command == "save") {
    Tokenizer::load(argv[2]).save(argv[3]);
    return 0;
  }
  const std::string input = tandem::read_all(STDIN_FILENO).value();
  if (command == "train") {
    const std::vector<std::string> texts{input};
    Tokenizer(tandem::train_vocabulary(texts, {.size = std::stoll(argv[2]), .min_count = 1})).save(argv[3]);
    return 0;
  }
  Tokenizer tokenizer = Tokenizer::load(argv[2]);
  std::vector<tandem::TokenId> ids;
  std::string output;
  if (command == "decode") {
    ids.resize(input.size() / sizeof(tandem::TokenId));
    std::memcpy(ids.data(), input.data(), ids.size() * sizeof(tandem::TokenId));
    output = tokenizer.decode(ids);
  } else {
    ids = tokenizer.encode(input, command == "encode" ? tandem::Specials::Recognise : tandem::Specials::AsText);
    output.assign(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(tandem::TokenId));
  }
  return tandem::write_all(STDOUT_FILENO, output) ? 0 : 1;
}
