#include "text/tokenizer.h"

#include <tandem/error.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "base/utf8.h"
#include "text/bpe.h"
#include "text/check_vocabulary.h"
#include "text/pretokenize.h"
#include "text/special_finder.h"
#include "text/vocabulary_files.h"

namespace tandem {

struct Tokenizer::Tables {
  explicit Tables(Vocabulary known);

  Vocabulary vocabulary;
  Bpe bpe;
  PieceTable short_tokens;
  std::unordered_map<std::string_view, TokenId> long_tokens;
};

Tokenizer::Tables::Tables(Vocabulary known)
    : vocabulary(std::move(known)), bpe(vocabulary), short_tokens(vocabulary.tokens.size()) {
  std::vector<TokenId> ids;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    // The bytes of a token may be merged to other tokens; those of a special token always are.
    ids.clear();
    bpe.encode(token, ids);
    if (ids != std::vector{static_cast<TokenId>(id)}) continue;
    if (token.size() <= PieceKey::kMaxLength) {
      short_tokens.add({token.data(), token.size(), token.data() + token.size()}, ids);
    } else {
      long_tokens.emplace(token, static_cast<TokenId>(id));
    }
  }
}

Tokenizer::Tokenizer(Vocabulary vocabulary) {
  check_vocabulary(vocabulary, "the vocabulary");
  tables_ = std::make_shared<const Tables>(std::move(vocabulary));
}

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  return Tokenizer(std::make_shared<const Tables>(load_vocabulary(folder)));
}

void Tokenizer::save(const std::filesystem::path& folder) const { save_vocabulary(tables_->vocabulary, folder); }

std::vector<TokenId> Tokenizer::encode(std::string_view text, Specials specials) {
  std::vector<TokenId> ids;
  encode(text, ids, specials);
  return ids;
}

std::int64_t Tokenizer::encode(std::string_view text, std::vector<TokenId>& ids, Specials specials) {
  RepairedText repaired;
  if (valid_utf8_prefix(text) != text.size()) {
    repaired = repair_utf8(text);
    text = repaired.text;
  }
  if (specials == Specials::Recognise) {
    encode_around_specials(text, ids);
  } else {
    encode_valid(text, ids);
  }
  return repaired.num_replaced;
}

void Tokenizer::encode_around_specials(std::string_view text, std::vector<TokenId>& ids) {
  SpecialFinder finder(tables_->vocabulary, text);
  std::size_t at = 0;
  while (const auto found = finder.next(at)) {
    encode_valid(text.substr(at, found->at - at), ids);
    ids.push_back(found->id);
    at = found->at + tables_->vocabulary.tokens[static_cast<std::size_t>(found->id)].size();
  }
  encode_valid(text.substr(at), ids);
}

void Tokenizer::encode_valid(std::string_view text, std::vector<TokenId>& ids) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const char* const stop = piece_end(at, end);
    const auto length = static_cast<std::size_t>(stop - at);
    if (length <= PieceKey::kMaxLength) {
      const PieceKey key(at, length, end);
      if (const PieceEntry* entry = tables_->short_tokens.find(key)) {
        ids.push_back(entry->ids.front());
      } else {
        encode_rare(key, {at, length}, ids);
      }
    } else if (const auto token = tables_->long_tokens.find({at, length}); token != tables_->long_tokens.end()) {
      ids.push_back(token->second);
    } else {
      tables_->bpe.encode({at, length}, ids);
    }
    at = stop;
  }
}

void Tokenizer::encode_rare(const PieceKey& key, std::string_view piece, std::vector<TokenId>& ids) {
  if (const PieceEntry* entry = cache_.find(key)) {
    ids.insert(ids.end(), entry->ids.begin(), entry->ids.begin() + entry->num_ids);
    return;
  }
  const std::size_t size = ids.size();
  tables_->bpe.encode(piece, ids);
  cache_.add(key, std::span(ids).subspan(size));
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) text += token(id);
  return valid_utf8_prefix(text) == text.size() ? text : repair_utf8(text).text;
}

std::string_view Tokenizer::token(TokenId id) const {
  if (id < 0 || id >= size()) {
    fail(ErrorKind::Data, str("tokenizer: token id ", id, " is out of range: ids are 0 to ", size() - 1),
         "the ids are from another tokenizer, or from a model with a larger vocabulary");
  }
  return tables_->vocabulary.tokens[static_cast<std::size_t>(id)];
}

std::int64_t Tokenizer::size() const { return static_cast<std::int64_t>(tables_->vocabulary.tokens.size()); }

std::optional<TokenId> Tokenizer::special(std::string_view name) const {
  for (const TokenId id : tables_->vocabulary.specials) {
    if (token(id) == name) return id;
  }
  return std::nullopt;
}

const Vocabulary& Tokenizer::vocabulary() const { return tables_->vocabulary; }

}  // namespace tandem
