#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/gpt2/continuation.h"

namespace tandem {
namespace {

using torch::Tensor;

struct Hypothesis {
  Tokens text;
  double score = 0;  // log probability; of a finished one, with the length penalty
};

// A text and a token that may follow it.
struct Candidate {
  std::int64_t text = 0;
  std::int64_t token = 0;
  double log_p = 0;  // of text and token
};

// Beam search for one prompt.
class Search {
 public:
  explicit Search(const GenerateOptions& options) : options_(options), live_(1) {}

  const std::vector<Hypothesis>& live() const { return live_; }
  bool is_done() const { return is_done_; }
  const Tokens& best() const { return ended_.front().text; }

  // One step, given the log probabilities of the next token of each live text; returns the new live texts, best first.
  std::vector<Candidate> step(const Tensor& log_p) {
    ++length_;
    const bool is_last = length_ == options_.max_new_tokens;
    const std::vector<Candidate> candidates = best_candidates(log_p);
    std::vector<Candidate> next;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const bool is_stop = candidates[i].token == options_.stop_token;
      if (!is_stop && !is_last) {
        if (next.size() < num_beams()) next.push_back(candidates[i]);
      } else if (i < num_beams()) {
        end(candidates[i], is_stop);
      }
    }
    grow(next);
    is_done_ = next.empty() || cannot_improve();
    if (is_done_) next.clear();
    return next;
  }

 private:
  std::size_t num_beams() const { return static_cast<std::size_t>(options_.beams); }
  double normalized(double log_p) const {
    return log_p / std::pow(static_cast<double>(length_), options_.length_penalty);
  }

  // The 2 x beams most probable candidates, so that enough remain if half of them end.
  std::vector<Candidate> best_candidates(const Tensor& log_p) const {
    std::vector<float> sums;
    for (const Hypothesis& text : live_) sums.push_back(static_cast<float>(text.score));
    const Tensor all = (log_p + torch::tensor(sums, log_p.options()).unsqueeze(1)).flatten();
    const auto [values, places] = all.topk(std::min(2 * options_.beams, all.numel()));
    const Tensor best = values.cpu(), place = places.cpu();
    std::vector<Candidate> candidates;
    for (std::int64_t i = 0; i < best.numel(); ++i) {
      const auto value = best.const_data_ptr<float>()[i];
      const std::int64_t index = place.const_data_ptr<std::int64_t>()[i];
      if (std::isfinite(value)) candidates.push_back({index / log_p.size(1), index % log_p.size(1), value});
    }
    return candidates;
  }

  void end(const Candidate& candidate, bool is_stop) {
    Hypothesis ended{live_[candidate.text].text, normalized(candidate.log_p)};
    if (!is_stop) ended.text.push_back(candidate.token);
    const auto is_better = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
    ended_.insert(std::upper_bound(ended_.begin(), ended_.end(), ended, is_better), std::move(ended));
    if (ended_.size() > num_beams()) ended_.pop_back();
  }

  void grow(const std::vector<Candidate>& next) {
    std::vector<Hypothesis> grown;
    for (const auto& [text, token, log_p] : next) {
      grown.push_back({live_[text].text, log_p});
      grown.back().text.push_back(token);
    }
    live_ = std::move(grown);
  }

  // The log probability of a live text can only fall; as in transformers, a later effect of the length penalty is
  // ignored.
  bool cannot_improve() const {
    return ended_.size() == num_beams() && normalized(live_.front().score) <= ended_.back().score;
  }

  const GenerateOptions& options_;
  std::vector<Hypothesis> live_, ended_;  // best first
  std::int64_t length_ = 0;
  bool is_done_ = false;
};

std::vector<const Tokens*> live_texts(std::span<const Search> searches) {
  std::vector<const Tokens*> texts;
  for (const Search& search : searches) {
    if (search.is_done()) continue;
    for (const Hypothesis& hypothesis : search.live()) texts.push_back(&hypothesis.text);
  }
  return texts;
}

}  // namespace

std::vector<Tokens> beam_search(Gpt2& model, std::span<const Prompt> prompts, const GenerateOptions& options) {
  std::vector<Search> searches(prompts.size(), Search(options));
  Continuation continuation(model, prompts, options.max_new_tokens);
  while (true) {
    const Tensor log_p = continuation.logits().log_softmax(1);
    forbid(log_p, live_texts(searches), options);
    Tokens rows, tokens;
    std::int64_t first_row = 0;
    for (Search& search : searches) {
      if (search.is_done()) continue;
      const auto num_rows = static_cast<std::int64_t>(search.live().size());
      for (const Candidate& candidate : search.step(log_p.narrow(0, first_row, num_rows))) {
        rows.push_back(first_row + candidate.text);
        tokens.push_back(candidate.token);
      }
      first_row += num_rows;
    }
    if (rows.empty()) break;
    continuation.append(rows, tokens);
  }
  std::vector<Tokens> texts;
  for (const Search& search : searches) texts.push_back(search.best());
  return texts;
}

}  // namespace tandem
