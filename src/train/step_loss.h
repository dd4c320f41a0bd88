#pragma once

#include <tandem/communicator.h>
#include <tandem/train_step.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

constexpr std::size_t kMostTerms = 16;

// Sums of losses, as ranks exchange them: numbers only, of a fixed size for any number of terms.
struct Tally {
  struct Term {
    double sum = 0;  // weighted
    double count = 0;
    double min_count = 0;
    double num_attached = 0;  // micro-batches in which the sum has a gradient
    double num_detached = 0;  // those in which it has none, though it is not 0

    double divisor() const { return std::max(count, min_count); }
  };

  double num_batches = 0;
  double work = 0;
  double layout = 0;  // hash of the names of the terms and of which have a count of their own; 0: no batch
  double num_terms = 0;
  std::array<Term, kMostTerms> terms = {};

  friend Tally operator+(const Tally& a, const Tally& b);
};

// The losses of one step. Their values are read after all have been computed, since reading one synchronizes with the
// GPU.
class StepLoss {
 public:
  StepLoss(const StepOptions& options, Communicator& comm)
      : step_(options.step), is_exact_(options.is_exact), comm_(comm) {}

  // Of the next micro-batch of this rank: `loss` as given, then with a count for every term. Other terms than in the
  // micro-batch before are an Error.
  void add(const Loss& given, const Loss& loss, std::span<const std::int64_t> ids);

  // The total counts, over all micro-batches of all ranks, that these know before the forward pass; one collective.
  std::vector<KnownCount> known_total(std::span<const BatchName> batches) const;

  // The sum over all micro-batches of all ranks, along the tree of exact mode; one collective. A loss that is not
  // finite, whose count is 0 though it has a value, or that is detached in some micro-batches is the same Error on
  // every rank.
  Tally total() const;

  // Name and weighted mean of each term; on a rank without a micro-batch the names are "term 0", "term 1", ...
  std::vector<std::pair<std::string, double>> means(const Tally& total) const;
  std::string name_of(std::size_t term) const;

 private:
  struct BatchLoss {
    Loss loss;                   // detached
    std::vector<bool> attached;  // which of its terms had a gradient
    std::vector<std::int64_t> ids;
  };

  [[noreturn]] void fail_terms(const char* what) const;
  void check_term(const Tally& total, std::size_t index) const;
  Tally mine() const;
  std::vector<Tally> gather(const Tally& mine) const;
  void check(const std::vector<Tally>& ranks) const;
  [[noreturn]] void fail_not_finite() const;
  std::string places(const std::function<bool(const BatchLoss&, std::size_t term)>& is_so) const;

  std::int64_t step_;
  bool is_exact_;
  Communicator& comm_;
  std::string layout_;  // of the terms of all micro-batches
  std::vector<BatchLoss> losses_;
};

// Whether a term adds to the loss. The mean of no samples is nan, and so is its product with their number.
bool contributes(const LossTerm& term);

}  // namespace tandem
