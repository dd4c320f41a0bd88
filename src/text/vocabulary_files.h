#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "text/vocabulary.h"

namespace tandem {

// Reads and writes a vocabulary in Hugging Face's format; see Tokenizer for the files. An invalid file is an Error of
// kind Data that names the file and, if known, the line.
Vocabulary load_vocabulary(const std::filesystem::path& folder);
void save_vocabulary(const Vocabulary& vocabulary, const std::filesystem::path& folder);

// The text of a file, and its name in Errors.
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
