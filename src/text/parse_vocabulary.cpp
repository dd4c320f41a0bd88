#include <tandem/error.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/json.h"
#include "base/text.h"
#include "text/byte_alphabet.h"
#include "text/check_vocabulary.h"
#include "text/vocabulary_files.h"

namespace tandem {
namespace {

constexpr const char* kDamaged = "the file may be damaged, truncated, or belong to another tokenizer";
constexpr const char* kOtherKind = "only a byte-level BPE like that of GPT-2 can be read";
constexpr std::size_t kMaxShown = 60;  // of an invalid text

[[noreturn]] void fail_in(std::string_view where, const std::string& what, const char* hint = kDamaged) {
  fail(ErrorKind::Data, str("tokenizer: ", where, ": ", what), hint);
}

// The name of the file, and the line of the first occurrence of this string, if it is not escaped.
std::string place_of(const NamedText& file, const std::string& name) {
  const std::size_t at = file.text.find(json_text(name));
  if (at == std::string::npos) return file.name;
  const auto line = 1 + std::count(file.text.begin(), file.text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return str(file.name, " line ", line);
}

// Tokens by their names in files.
class TokenNames {
 public:
  explicit TokenNames(const NamedText& file) : file_(file) {}

  // An existing token must have the same id.
  void add(const std::string& name, std::int64_t id) {
    const auto [known, is_new] = ids_.emplace(name, id);
    if (!is_new && known->second != id) {
      fail_in(place_of(file_, name), str("token '", name, "' has the ids ", known->second, " and ", id));
    }
  }

  // By id. Every id must be in range and unique, so there are no gaps.
  std::vector<std::string> in_order() const {
    const auto num_tokens = static_cast<std::int64_t>(ids_.size());
    std::vector<std::string> names(ids_.size());
    for (const auto& [name, id] : ids_) {
      if (id < 0 || id >= num_tokens) {
        fail_in(place_of(file_, name), str("token '", name, "' has id ", id, ", but the ids of ", num_tokens,
                                           " tokens go from 0 to ", num_tokens - 1));
      }
      std::string& place = names[static_cast<std::size_t>(id)];
      if (!place.empty()) {
        const auto& [one, other] = std::minmax(place, name);
        fail_in(place_of(file_, other), str("tokens '", one, "' and '", other, "' both have id ", id));
      }
      if (name.empty()) fail_in(place_of(file_, name), str("token ", id, " has no name"));
      place = name;
    }
    return names;
  }

  // Only after in_order() has checked the names.
  std::optional<TokenId> find(const std::string& name) const {
    const auto known = ids_.find(name);
    return known == ids_.end() ? std::nullopt : std::optional(static_cast<TokenId>(known->second));
  }

  Merge merge_of(const std::string& left, const std::string& right, const std::string& where) const {
    const auto id_of = [&](const std::string& name) {
      const auto id = find(name);
      if (!id) fail_in(where, str("'", name, "' is not a token of ", file_.name));
      return *id;
    };
    return {.left = id_of(left), .right = id_of(right), .result = id_of(left + right)};
  }

  const NamedText& file() const { return file_; }

 private:
  const NamedText& file_;
  std::unordered_map<std::string, std::int64_t> ids_;
};

TokenNames names_of(const NamedText& file, const Json& vocab) {
  TokenNames names(file);
  for (const auto& [name, id] : vocab.as_object()) names.add(name, id.as_integer());
  return names;
}

// Special tokens are written as they are, the others in printable characters.
Vocabulary tokens_of(const TokenNames& names, std::vector<TokenId> specials) {
  Vocabulary vocabulary{.tokens = names.in_order(), .merges = {}, .specials = std::move(specials)};
  std::vector<bool> is_special(vocabulary.tokens.size());
  for (const TokenId id : vocabulary.specials) is_special[static_cast<std::size_t>(id)] = true;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    std::string& token = vocabulary.tokens[id];
    if (is_special[id]) continue;
    std::optional<std::string> bytes = bytes_of_visible(token);
    if (!bytes) {
      fail_in(place_of(names.file(), token), str("token '", token, "' has characters that stand for no byte"),
              kOtherKind);
    }
    token = std::move(*bytes);
  }
  return vocabulary;
}

// A member that affects the ids must be missing, null, or as in GPT-2. `near` is a string in the file, for its line.
void require(const NamedText& file, const std::string& near, const Json& object, std::string_view name,
             const Json& wanted) {
  const Json* member = object.find(name);
  if (member == nullptr || member->is_null() || *member == wanted) return;
  fail_in(place_of(file, near), str(name, " is ", json_text(*member).substr(0, kMaxShown)), kOtherKind);
}

// A post-processor may add tokens around a text; GPT-2's does not, nor the template that transformers 5 writes for it.
void require_no_tokens_around(const NamedText& file, const Json* processor) {
  if (processor == nullptr || processor->is_null()) return;
  if (processor->at("type") == Json("TemplateProcessing")) {
    require(file, "post_processor", *processor, "special_tokens", Json::Object{});
  } else {
    require(file, "post_processor", *processor, "type", "ByteLevel");
  }
}

void require_gpt2_kind(const NamedText& file, const Json& whole) {
  require(file, "normalizer", whole, "normalizer", {});
  require_no_tokens_around(file, whole.find("post_processor"));
  const Json& splitter = whole.at("pre_tokenizer");
  splitter.at("type");
  require(file, "pre_tokenizer", splitter, "type", "ByteLevel");
  require(file, "pre_tokenizer", splitter, "add_prefix_space", false);
  require(file, "pre_tokenizer", splitter, "use_regex", true);
  const Json& model = whole.at("model");
  require(file, "model", model, "type", "BPE");  // missing in old files
  require(file, "dropout", model, "dropout", 0.0);
  require(file, "byte_fallback", model, "byte_fallback", false);
  require(file, "ignore_merges", model, "ignore_merges", false);
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) require(file, name, model, name, "");
}

// Adds the special tokens.
std::vector<TokenId> add_specials(const NamedText& file, const Json& whole, TokenNames& names) {
  std::vector<TokenId> specials;
  const Json* added = whole.find("added_tokens");
  if (added == nullptr) return specials;
  for (const Json& token : added->as_array()) {
    const std::string& content = token.at("content").as_string();
    for (const char* name : {"single_word", "lstrip", "rstrip"}) require(file, content, token, name, false);
    const std::int64_t id = token.at("id").as_integer();
    names.add(content, id);
    specials.push_back(static_cast<TokenId>(id));
  }
  return specials;
}

// "left right"
Merge parse_merge(const TokenNames& names, const std::string& text, const std::string& where) {
  const std::vector<std::string> parts = split(text, ' ');
  if (parts.size() != 2) {
    fail_in(where, str("'", text.substr(0, kMaxShown), "' is not two tokens separated by a space"));
  }
  return names.merge_of(parts[0], parts[1], where);
}

// A merge is a string or, since tokenizers 0.20, an array of two.
Merge merge_of_json(const TokenNames& names, const Json& json, const std::string& where) {
  if (!json.is_array()) return parse_merge(names, json.as_string(), where);
  const Json::Array& pair = json.as_array();
  if (pair.size() != 2) fail_in(where, str("it has ", pair.size(), " tokens"));
  return names.merge_of(pair[0].as_string(), pair[1].as_string(), where);
}

Vocabulary read_tokenizer_json(const NamedText& file, const Json& whole) {
  require_gpt2_kind(file, whole);
  const Json& model = whole.at("model");
  TokenNames names = names_of(file, model.at("vocab"));
  std::vector<TokenId> specials = add_specials(file, whole, names);
  Vocabulary vocabulary = tokens_of(names, std::move(specials));
  std::size_t number = 0;
  for (const Json& merge : model.at("merges").as_array()) {
    vocabulary.merges.push_back(merge_of_json(names, merge, str(file.name, " merge ", ++number)));
  }
  return vocabulary;
}

// Calls `read` for a JSON file; Errors about values name the file.
template <class Read>
auto read_json(const NamedText& file, Read read) {
  const Json whole = parse_json(file.text, file.name);
  try {
    return read(whole);
  } catch (const Error& error) {
    if (error.message().starts_with("tokenizer: ")) throw;
    fail_in(file.name, error.message(), kOtherKind);
  }
}

}  // namespace

Vocabulary parse_tokenizer_json(const NamedText& file) {
  Vocabulary vocabulary = read_json(file, [&](const Json& whole) { return read_tokenizer_json(file, whole); });
  check_vocabulary(vocabulary, file.name);
  return vocabulary;
}

Vocabulary parse_vocabulary(const NamedText& vocab_json, const NamedText& merges_txt) {
  const TokenNames names = read_json(vocab_json, [&](const Json& whole) { return names_of(vocab_json, whole); });
  std::vector<TokenId> specials;
  if (const auto end_of_text = names.find(std::string(kEndOfText))) specials.push_back(*end_of_text);
  Vocabulary vocabulary = tokens_of(names, std::move(specials));
  std::size_t number = 0;
  for (const std::string& line : split(merges_txt.text, '\n')) {
    const std::string pair(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
    const bool is_version = ++number == 1 && pair.starts_with("#version");
    if (!is_version && !pair.empty()) {
      vocabulary.merges.push_back(parse_merge(names, pair, str(merges_txt.name, " line ", number)));
    }
  }
  check_vocabulary(vocabulary, merges_txt.name);
  return vocabulary;
}

}  // namespace tandem
