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

// What to do with the name of a special token in a text.
enum class Specials { Recognise, AsText };

// Byte-level BPE as GPT-2 has it. For one thread at a time; a copy for another thread is cheap: it shares the
// vocabulary, and remembers pieces of its own.
class Tokenizer {
 public:
  // An Error of kind Data when the vocabulary is none: a byte without a token, a merge that is there twice or whose
  // tokens do not fit together, a token that nothing makes.
  explicit Tokenizer(Vocabulary vocabulary);

  // From a folder as Hugging Face writes it: `tokenizer.json`, else `vocab.json` with `merges.txt`, where
  // "<|endoftext|>" is special. Unfit files are an Error of kind Data that names the file and the line.
  static Tokenizer load(const std::filesystem::path& folder);

  // All three files, each in one step. The folder is made where it is missing.
  void save(const std::filesystem::path& folder) const;

  // The ids of the text. What is not UTF-8 becomes U+FFFD before.
  std::vector<TokenId> encode(std::string_view text, Specials specials = Specials::Recognise);

  // The same, appended to `ids`. Returns how many U+FFFD it put.
  std::int64_t encode(std::string_view text, std::vector<TokenId>& ids, Specials specials = Specials::Recognise);

  // The text of the ids, names of special tokens included. Bytes that are not UTF-8 in the end become U+FFFD. An id
  // that is none is an Error.
  std::string decode(std::span<const TokenId> ids) const;

  // The bytes of one token, which need not be whole characters.
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

  std::shared_ptr<const Tables> tables_;  // shared by copies, which threads may hold
  PieceCache cache_;
};

}  // namespace tandem
