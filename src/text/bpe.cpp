#include "text/bpe.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

namespace tandem {
namespace {

constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();

// A token in a list of those that are left of a piece; one that was merged into its left neighbour has no id.
struct Link {
  TokenId id;
  std::uint32_t previous;
  std::uint32_t next;
};

constexpr TokenId kGone = -1;

// Rank in the upper half, place in the lower, so that the least is the next.
using Candidate = std::uint64_t;

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary) : steps_(vocabulary.merges.size()) {
  // A special token may be one byte too; text is made of the others.
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
  if (piece.size() <= kShort) {
    encode_short(piece, ids);
  } else {
    encode_long(piece, ids);
  }
}

void Bpe::encode_short(std::string_view piece, std::vector<TokenId>& ids) const {
  std::array<TokenId, kShort> tokens;  // NOLINT(cppcoreguidelines-pro-type-member-init): as long as the piece
  std::array<Step, kShort> steps;      // NOLINT(cppcoreguidelines-pro-type-member-init): of a token and the next
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

void Bpe::encode_long(std::string_view piece, std::vector<TokenId>& ids) const {
  std::vector<Link> links;
  links.reserve(piece.size());
  for (std::uint32_t i = 0; i < piece.size(); ++i) {
    links.push_back({bytes_[static_cast<unsigned char>(piece[i])], i - 1, i + 1});
  }
  links.front().previous = kEnd;
  links.back().next = kEnd;

  const auto step_at = [&](std::uint32_t at) {
    const bool is_pair = at != kEnd && links[at].id != kGone && links[at].next != kEnd;
    return is_pair ? step_of(links[at].id, links[links[at].next].id) : kNone;
  };
  std::vector<Candidate> candidates;
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    if (const Step step = step_at(i); step != kNone) candidates.push_back(step >> 32 << 32 | i);
  }
  std::priority_queue queue(std::greater<>{}, std::move(candidates));
  const auto add = [&](std::uint32_t at) {
    if (const Step step = step_at(at); step != kNone) queue.push(step >> 32 << 32 | at);
  };
  while (!queue.empty()) {
    const Candidate candidate = queue.top();
    queue.pop();
    const auto at = static_cast<std::uint32_t>(candidate);
    const Step step = step_at(at);
    if (step == kNone || step >> 32 != candidate >> 32) continue;  // its neighbours have changed since
    Link& link = links[at];
    Link& merged = links[link.next];
    link.id = static_cast<TokenId>(step);
    link.next = merged.next;
    merged.id = kGone;
    if (link.next != kEnd) links[link.next].previous = at;
    add(link.previous);
    add(at);
  }
  for (const Link& link : links) {
    if (link.id != kGone) ids.push_back(link.id);
  }
}

}  // namespace tandem
