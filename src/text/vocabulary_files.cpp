#include "text/vocabulary_files.h"

#include <tandem/error.h>

#include <algorithm>
#include <system_error>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "text/byte_alphabet.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizerJson = "tokenizer.json";
constexpr const char* kVocabJson = "vocab.json";
constexpr const char* kMergesTxt = "merges.txt";

NamedText read_named(const fs::path& path) { return {.text = read_regular_file(path), .name = path.string()}; }

std::string name_of(const Vocabulary& vocabulary, TokenId id) {
  const std::string& token = vocabulary.tokens[static_cast<std::size_t>(id)];
  return std::ranges::count(vocabulary.specials, id) > 0 ? token : visible_bytes(token);
}

Json vocab_json(const Vocabulary& vocabulary) {
  Json::Object vocab;
  for (TokenId id = 0; id < static_cast<TokenId>(vocabulary.tokens.size()); ++id) {
    vocab.emplace_back(name_of(vocabulary, id), id);
  }
  return vocab;
}

std::string merge_text(const Vocabulary& vocabulary, const Merge& merge) {
  return str(name_of(vocabulary, merge.left), ' ', name_of(vocabulary, merge.right));
}

}  // namespace

Vocabulary load_vocabulary(const fs::path& folder) {
  std::error_code unknown;
  if (fs::exists(folder / kTokenizerJson, unknown)) return parse_tokenizer_json(read_named(folder / kTokenizerJson));
  if (!fs::exists(folder / kVocabJson, unknown) || !fs::exists(folder / kMergesTxt, unknown)) {
    fail(ErrorKind::Data,
         str("tokenizer: ", folder, " has neither ", kTokenizerJson, " nor ", kVocabJson, " with ", kMergesTxt),
         "name a folder that holds a tokenizer, as Hugging Face saves it");
  }
  return parse_vocabulary(read_named(folder / kVocabJson), read_named(folder / kMergesTxt));
}

void save_vocabulary(const Vocabulary& vocabulary, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    fail(ErrorKind::Data, str("tokenizer: cannot make ", folder, ": ", error.message()),
         "check the folder above it, and its rights");
  }
  replace_file(folder / kVocabJson, vocab_json_text(vocabulary));
  replace_file(folder / kMergesTxt, merges_txt_text(vocabulary));
  replace_file(folder / kTokenizerJson, tokenizer_json_text(vocabulary));
}

std::string vocab_json_text(const Vocabulary& vocabulary) { return json_text(vocab_json(vocabulary)) + "\n"; }

std::string merges_txt_text(const Vocabulary& vocabulary) {
  std::string text = "#version: 0.2\n";
  for (const Merge& merge : vocabulary.merges) text += merge_text(vocabulary, merge) + '\n';
  return text;
}

std::string tokenizer_json_text(const Vocabulary& vocabulary) {
  Json::Array added;
  for (const TokenId id : vocabulary.specials) {
    added.push_back(Json::Object{{"id", id},
                                 {"content", name_of(vocabulary, id)},
                                 {"single_word", false},
                                 {"lstrip", false},
                                 {"rstrip", false},
                                 {"normalized", false},
                                 {"special", true}});
  }
  Json::Array merges;
  for (const Merge& merge : vocabulary.merges) merges.emplace_back(merge_text(vocabulary, merge));
  const Json byte_level =
      Json::Object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json model = Json::Object{{"type", "BPE"},
                                  {"dropout", {}},
                                  {"unk_token", {}},
                                  {"continuing_subword_prefix", {}},
                                  {"end_of_word_suffix", {}},
                                  {"fuse_unk", false},
                                  {"byte_fallback", false},
                                  {"ignore_merges", false},
                                  {"vocab", vocab_json(vocabulary)},
                                  {"merges", std::move(merges)}};
  return json_text_indented(Json::Object{{"version", "1.0"},
                                         {"truncation", {}},
                                         {"padding", {}},
                                         {"added_tokens", std::move(added)},
                                         {"normalizer", {}},
                                         {"pre_tokenizer", byte_level},
                                         {"post_processor", byte_level},
                                         {"decoder", byte_level},
                                         {"model", model}}) +
         "\n";
}

}  // namespace tandem
