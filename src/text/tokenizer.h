#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/piece_table.h"
#include "text/vocabulary.h"

namespace tandem {

// How to treat the name of a special token in a text.
enum class Specials { Recognise, AsText };

// Byte-level BPE as in GPT-2. Not thread-safe; a copy for another thread is cheap: it shares the vocabulary and has its
// own cache.
class Tokenizer {
 public:
  // An Error of kind Data for an invalid vocabulary: a byte without a token, a duplicate or invalid merge, a token that
  // no merge produces.
  explicit Tokenizer(Vocabulary vocabulary);

  // From a folder in Hugging Face's format: `tokenizer.json`, else `vocab.json` and `merges.txt`, where "<|endoftext|>"
  // is special. An invalid file is an Error of kind Data that names the file and the line.
  static Tokenizer load(const std::filesystem::path& folder);

  // Writes all three files, each atomically. Creates the folder if missing.
  void save(const std::filesystem::path& folder) const;

  // The ids of the text. Invalid UTF-8 is replaced by U+FFFD.
  std::vector<TokenId> encode(std::string_view text, Specials specials = Specials::Recognise);

  // The same, appended to `ids`. Returns the number of replacements by U+FFFD.
  std::int64_t encode(std::string_view text, std::vector<TokenId>& ids, Specials specials = Specials::Recognise);

  // The text of the ids, including the names of special tokens. Invalid UTF-8 is replaced by U+FFFD. An unknown id is
  // an Error.
  std::string decode(std::span<const TokenId> ids) const;

  // The bytes of one token, which may be part of a character.
  std::string_view token(TokenId id) const;

  std::int64_t size() const;
  std::optional<TokenId> special(std::string_view name) const;
  const Vocabulary& vocabulary() const;

 private:
  struct Tables;

  explicit Tokenizer(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)) {}

  void encode_valid(std::string_view text, std::vector<TokenId>& ids);
  void encode_around_specials(std::string_view text, std::vector<TokenId>& ids);
  void encode_rare(const PieceKey& key, std::string_view piece, std::vector<TokenId>& ids);

  std::shared_ptr<const Tables> tables_;  // shared by copies in several threads
  PieceCache cache_;
};

}  // namespace tandem
