#include "text/bpe.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

namespace tandem {

// Merges a long piece: a linked list of its tokens, and a priority queue of possible merges.
class Bpe::LongPiece {
 public:
  LongPiece(const Bpe& bpe, std::string_view piece) : bpe_(bpe) {
    links_.reserve(piece.size());
    for (std::uint32_t i = 0; i < piece.size(); ++i) {
      links_.push_back({bpe.bytes_[static_cast<unsigned char>(piece[i])], i - 1, i + 1});
    }
    links_.front().previous = kEnd;
    links_.back().next = kEnd;
    for (std::uint32_t i = 0; i < links_.size(); ++i) add(i);
  }

  void merge() {
    while (!queue_.empty()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      const auto place = static_cast<std::uint32_t>(candidate);
      const Step step = step_at(place);
      const bool is_current =
          step != kNone && step >> 32 == candidate >> 32;  // otherwise outdated: a neighbour was merged
      if (is_current) merge_at(place, static_cast<TokenId>(step));
    }
  }

  void append_to(std::vector<TokenId>& ids) const {
    for (const Link& link : links_) {
      if (link.id != kGone) ids.push_back(link.id);
    }
  }

 private:
  static constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();
  static constexpr TokenId kGone = -1;

  struct Link {
    TokenId id;
    std::uint32_t previous;
    std::uint32_t next;
  };

  // Rank in the upper half, position in the lower: the smallest is next.
  using Candidate = std::uint64_t;

  Step step_at(std::uint32_t place) const {
    if (place == kEnd || links_[place].id == kGone || links_[place].next == kEnd) return kNone;
    return bpe_.step_of(links_[place].id, links_[links_[place].next].id);
  }

  void add(std::uint32_t place) {
    const Step step = step_at(place);
    if (step != kNone) queue_.push(step >> 32 << 32 | place);
  }

  void merge_at(std::uint32_t place, TokenId result) {
    Link& link = links_[place];
    Link& merged = links_[link.next];
    link.id = result;
    link.next = merged.next;
    merged.id = kGone;
    if (link.next != kEnd) links_[link.next].previous = place;
    add(link.previous);
    add(place);
  }

  const Bpe& bpe_;
  std::vector<Link> links_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

Bpe::Bpe(const Vocabulary& vocabulary) : steps_(vocabulary.merges.size()) {
  // A special token may be a single byte too; text never uses it.
  std::vector<bool> is_special(vocabulary.tokens.size());
  for (const TokenId id : vocabulary.specials) is_special[static_cast<std::size_t>(id)] = true;
  for (const bool wanted : {true, false}) {
    for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      const std::string& token = vocabulary.tokens[id];
      if (token.size() == 1 && is_special[id] == wanted) {
        bytes_[static_cast<unsigned char>(token.front())] = static_cast<TokenId>(id);
      }
    }
  }
  Step rank = 0;
  for (const Merge& merge : vocabulary.merges) {
    steps_.at(merge.left, merge.right) = rank++ << 32 | static_cast<std::uint32_t>(merge.result);
  }
}

void Bpe::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (piece.size() <= kShort) return encode_short(piece, ids);
  LongPiece tokens(*this, piece);
  tokens.merge();
  tokens.append_to(ids);
}

void Bpe::encode_short(std::string_view piece, std::vector<TokenId>& ids) const {
  std::array<TokenId, kShort> tokens;  // NOLINT(cppcoreguidelines-pro-type-member-init): one per byte of the piece
  std::array<Step, kShort> steps;  // NOLINT(cppcoreguidelines-pro-type-member-init): the merge of a token and the next
  std::size_t size = piece.size();
  for (std::size_t i = 0; i < size; ++i) tokens[i] = bytes_[static_cast<unsigned char>(piece[i])];
  for (std::size_t i = 0; i + 1 < size; ++i) steps[i] = step_of(tokens[i], tokens[i + 1]);
  while (size > 1) {
    const auto least = std::min_element(steps.begin(), steps.begin() + (size - 1));
    if (*least == kNone) break;
    const auto at = static_cast<std::size_t>(least - steps.begin());
    tokens[at] = static_cast<TokenId>(*least);
    --size;
    std::copy(tokens.begin() + (at + 2), tokens.begin() + (size + 1), tokens.begin() + (at + 1));
    if (at < size) std::copy(steps.begin() + (at + 1), steps.begin() + size, steps.begin() + at);
    if (at > 0) steps[at - 1] = step_of(tokens[at - 1], tokens[at]);
    if (at + 1 < size) steps[at] = step_of(tokens[at], tokens[at + 1]);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + size);
}

}  // namespace tandem
