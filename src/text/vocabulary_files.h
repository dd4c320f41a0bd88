#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "text/vocabulary.h"

namespace tandem {

// Reads and writes a vocabulary as Hugging Face does; the header of Tokenizer says which files. What is wrong with a
// file is an Error of kind Data that names it, and the line where there is one.
Vocabulary load_vocabulary(const std::filesystem::path& folder);
void save_vocabulary(const Vocabulary& vocabulary, const std::filesystem::path& folder);

// The text of a file, and the name that an Error gives it.
struct NamedText {
  std::string text;
  std::string name;
};

Vocabulary parse_tokenizer_json(const NamedText& file);
Vocabulary parse_vocabulary(const NamedText& vocab_json, const NamedText& merges_txt);

std::string tokenizer_json_text(const Vocabulary& vocabulary);
std::string vocab_json_text(const Vocabulary& vocabulary);
std::string merges_txt_text(const Vocabulary& vocabulary);

}  // namespace tandem
