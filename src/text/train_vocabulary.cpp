#include "text/train_vocabulary.h"

#include <tandem/error.h>

#include <array>
#include <deque>
#include <limits>
#include <queue>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/pair_map.h"
#include "text/pretokenize.h"

namespace tandem {
namespace {

using Counts = std::unordered_map<std::string_view, std::int64_t>;

void count_pieces(std::string_view text, Counts& counts) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const char* const stop = piece_end(at, end);
    ++counts[{at, static_cast<std::size_t>(stop - at)}];
    at = stop;
  }
}

// A distinct piece of the texts, as its current tokens.
struct Word {
  std::vector<TokenId> tokens;
  std::int64_t count;
};

struct Pair {
  TokenId left;
  TokenId right;
  std::int64_t count = 0;
  std::vector<std::uint32_t> words = {};  // that contain it or did
  bool is_fresh = false;                  // its count has grown since the last merge
};

// A pair with its count when it was queued. A count that has decreased since is noticed when the pair is popped.
struct Candidate {
  std::int64_t count;
  TokenId left;
  TokenId right;
  std::uint32_t pair;

  friend bool operator<(const Candidate& one, const Candidate& other) {
    return std::tuple(one.count, other.left, other.right) < std::tuple(other.count, one.left, one.right);
  }
};

class Trainer {
 public:
  Trainer(const Counts& counts, const TrainVocabularyOptions& options) : options_(options) {
    std::array<TokenId, 256> ids{};
    for (const unsigned char byte : bytes_in_order()) {
      ids[byte] = add_token(std::string(1, static_cast<char>(byte)));
    }
    for (const auto& [piece, count] : counts) {
      Word word{.tokens = {}, .count = count};
      for (const char byte : piece) word.tokens.push_back(ids[static_cast<unsigned char>(byte)]);
      words_.push_back(std::move(word));
    }
    for (std::uint32_t word = 0; word < words_.size(); ++word) count_pairs(word);
    queue_fresh();
  }

  Vocabulary train() {
    const auto size = static_cast<std::size_t>(options_.size - 1);
    while (vocabulary_.tokens.size() < size && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const std::int64_t count = pairs_[best.pair].count;
      if (count == best.count) {
        merge(best.pair);
      } else if (count >= options_.min_count) {
        queue_.push({count, best.left, best.right, best.pair});
      }
    }
    vocabulary_.specials.push_back(static_cast<TokenId>(vocabulary_.tokens.size()));
    vocabulary_.tokens.emplace_back(kEndOfText);
    return std::move(vocabulary_);
  }

 private:
  // Two merges that produce the same bytes produce the same token.
  TokenId add_token(const std::string& bytes) {
    const auto [known, is_new] = ids_.emplace(bytes, static_cast<TokenId>(ids_.size()));
    if (is_new) vocabulary_.tokens.push_back(bytes);
    return known->second;
  }

  void count_pairs(std::uint32_t index) {
    const Word& word = words_[index];
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      count_up(word.tokens[i], word.tokens[i + 1], index);
    }
  }

  void count_up(TokenId left, TokenId right, std::uint32_t word) {
    std::uint32_t& place = places_.at(left, right);
    if (place == 0) {
      pairs_.push_back({.left = left, .right = right});
      place = static_cast<std::uint32_t>(pairs_.size());
    }
    Pair& pair = pairs_[place - 1];
    pair.count += words_[word].count;
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
    if (!pair.is_fresh) fresh_.push_back(place - 1);
    pair.is_fresh = true;
  }

  void count_down(TokenId left, TokenId right, std::uint32_t word) {
    pairs_[*places_.find(left, right) - 1].count -= words_[word].count;
  }

  void queue_fresh() {
    for (const std::uint32_t place : fresh_) {
      Pair& pair = pairs_[place];
      pair.is_fresh = false;
      if (pair.count >= options_.min_count) queue_.push({pair.count, pair.left, pair.right, place});
    }
    fresh_.clear();
  }

  void merge(std::uint32_t place) {
    const auto token = [this](TokenId id) { return vocabulary_.tokens[static_cast<std::size_t>(id)]; };
    const auto [left, right] = std::pair(pairs_[place].left, pairs_[place].right);
    const Merge merge{.left = left, .right = right, .result = add_token(token(left) + token(right))};
    vocabulary_.merges.push_back(merge);
    for (const std::uint32_t word : std::exchange(pairs_[place].words, {})) merge_in(words_[word].tokens, merge, word);
    pairs_[place].count = 0;
    queue_fresh();
  }

  // From left to right, as in encoding. The tokens before `size` are done.
  void merge_in(std::vector<TokenId>& tokens, const Merge& merge, std::uint32_t word) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i + 1 == tokens.size() || tokens[i] != merge.left || tokens[i + 1] != merge.right) {
        tokens[size++] = tokens[i];
        continue;
      }
      if (size > 0) {
        count_down(tokens[size - 1], merge.left, word);
        count_up(tokens[size - 1], merge.result, word);
      }
      if (i + 2 < tokens.size()) {
        count_down(merge.right, tokens[i + 2], word);
        count_up(merge.result, tokens[i + 2], word);
      }
      tokens[size++] = merge.result;
      ++i;
    }
    tokens.resize(size);
  }

  const TrainVocabularyOptions& options_;
  Vocabulary vocabulary_;
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<Word> words_;
  std::vector<Pair> pairs_;
  PairMap<std::uint32_t> places_;  // index in pairs_, plus one
  std::vector<std::uint32_t> fresh_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

Vocabulary train_vocabulary(std::span<const std::string> texts, const TrainVocabularyOptions& options) {
  constexpr std::int64_t kLeast = 257;
  constexpr std::int64_t kMost = std::numeric_limits<TokenId>::max();
  if (options.size < kLeast || options.size > kMost) {
    fail(ErrorKind::Config, str("tokenizer: vocabulary size ", options.size, " is not from ", kLeast, " to ", kMost),
         str("256 bytes and ", kEndOfText, " are the smallest vocabulary; GPT-2 has 50257 tokens"));
  }
  std::deque<std::string> repaired;  // owns the text of the pieces
  Counts counts;
  for (const std::string& text : texts) {
    const bool is_valid = valid_utf8_prefix(text) == text.size();
    count_pieces(is_valid ? text : repaired.emplace_back(repair_utf8(text).text), counts);
  }
  return Trainer(counts, options).train();
}

}  // namespace tandem
