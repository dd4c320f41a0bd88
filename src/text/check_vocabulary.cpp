#include "text/check_vocabulary.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/text.h"
#include "text/byte_alphabet.h"
#include "text/pair_map.h"

namespace tandem {
namespace {

constexpr const char* kHint = "the file may be truncated, or belong to another tokenizer";

class Check {
 public:
  Check(const Vocabulary& vocabulary, std::string_view where)
      : vocabulary_(vocabulary), where_(where), is_made_(vocabulary.tokens.size()) {}

  void run() {
    for (const TokenId id : vocabulary_.specials) check_special(id);
    check_bytes();
    check_merges();
    const auto unmade = std::ranges::find(is_made_, false);
    if (unmade == is_made_.end()) return;
    const auto id = static_cast<std::size_t>(unmade - is_made_.begin());
    fail_with(str(std::count(unmade, is_made_.end(), false), " tokens are not produced by any merge, the first is ", id,
                  ", '", visible_bytes(vocabulary_.tokens[id]), "'"));
  }

 private:
  void check_special(TokenId id) {
    if (!is_token(id) || token(id).empty()) fail_with(str("special token ", id, " has no text"));
    is_made_[static_cast<std::size_t>(id)] = true;
  }

  void check_bytes() {
    std::vector<bool> is_there(256);
    for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
      const std::string& bytes = vocabulary_.tokens[id];
      if (bytes.size() != 1) continue;
      is_there[static_cast<unsigned char>(bytes.front())] = true;
      is_made_[id] = true;
    }
    const auto missing = std::ranges::find(is_there, false);
    if (missing != is_there.end()) {
      const auto byte = static_cast<char>(missing - is_there.begin());
      fail_with(str("no token for byte ", missing - is_there.begin(), " ('", visible_bytes({&byte, 1}),
                    "'): not a byte-level BPE"));
    }
  }

  void check_merges() {
    PairMap<std::size_t> numbers(vocabulary_.merges.size());
    std::size_t number = 0;
    for (const Merge& merge : vocabulary_.merges) {
      ++number;
      if (!is_token(merge.left) || !is_token(merge.right) || !is_token(merge.result) ||
          token(merge.left) + token(merge.right) != token(merge.result)) {
        fail_with(str("merge ", number, " does not join two tokens into a third"));
      }
      std::size_t& earlier = numbers.at(merge.left, merge.right);
      if (earlier != 0) fail_with(str("merges ", earlier, " and ", number, " are the same"));
      earlier = number;
      is_made_[static_cast<std::size_t>(merge.result)] = true;
    }
  }

  bool is_token(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < vocabulary_.tokens.size(); }
  const std::string& token(TokenId id) const { return vocabulary_.tokens[static_cast<std::size_t>(id)]; }

  [[noreturn]] void fail_with(const std::string& what) const {
    fail(ErrorKind::Data, str("tokenizer: ", where_, ": ", what), kHint);
  }

  const Vocabulary& vocabulary_;
  std::string_view where_;
  std::vector<bool> is_made_;  // by a merge, or special
};

}  // namespace

void check_vocabulary(const Vocabulary& vocabulary, std::string_view where) { Check(vocabulary, where).run(); }

}  // namespace tandem
