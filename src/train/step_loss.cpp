#include "train/step_loss.h"

#include <tandem/error.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>

#include "base/crc32c.h"
#include "base/text.h"
#include "train/tree_sum.h"

namespace tandem {
namespace {

using torch::Tensor;

static_assert(std::is_trivially_copyable_v<Tally> && sizeof(Tally) % sizeof(double) == 0);
constexpr std::int64_t kTallyNumbers = sizeof(Tally) / sizeof(double);

Tally sum_of(std::span<const Tally> tallies) {
  if (tallies.empty()) return {};
  TreeSum<Tally, std::plus<>> sum((std::plus<>()));
  for (const Tally& tally : tallies) sum.add(tally);
  return sum.total();
}

double value_of(const LossTerm& term) { return contributes(term) ? term.weight * term.sum.item<double>() : 0; }

Tally tally_of(const Loss& loss) {
  Tally tally{.num_batches = 1, .num_terms = static_cast<double>(loss.terms.size())};
  for (std::size_t i = 0; i < loss.terms.size(); ++i) {
    const LossTerm& term = loss.terms[i];
    tally.terms.at(i) = {.sum = value_of(term), .count = *term.count, .min_count = term.min_count};
  }
  tally.work = std::max(static_cast<double>(loss.work), *loss.terms.front().count);
  return tally;
}

// The names of the terms, and which have a count of their own.
std::string layout_of(const Loss& loss) {
  std::string layout;
  for (const LossTerm& term : loss.terms) layout += str(term.name, term.count ? " /" : "", '\n');
  return layout;
}

bool is_finite(const Tally& tally) {
  return std::ranges::all_of(tally.terms, [](const Tally::Term& term) { return std::isfinite(term.sum); });
}

constexpr std::size_t kMostIds = 16;

// "nan; samples 3 17"
std::string describe(double loss, std::span<const std::int64_t> ids) {
  std::string text = std::isnan(loss) ? "nan" : str(loss);  // -nan too
  if (!ids.empty()) text += "; samples";
  for (const std::int64_t id : ids.first(std::min(ids.size(), kMostIds))) text += str(" ", id);
  if (ids.size() > kMostIds) text += str(" and ", ids.size() - kMostIds, " more");
  return text;
}

}  // namespace

Tally operator+(const Tally& a, const Tally& b) {
  Tally sum{.num_batches = a.num_batches + b.num_batches,
            .work = a.work + b.work,
            .layout = std::max(a.layout, b.layout),
            .num_terms = std::max(a.num_terms, b.num_terms)};
  for (std::size_t i = 0; i < kMostTerms; ++i) {
    sum.terms[i] = {.sum = a.terms[i].sum + b.terms[i].sum,
                    .count = a.terms[i].count + b.terms[i].count,
                    .min_count = std::max(a.terms[i].min_count, b.terms[i].min_count)};
  }
  return sum;
}

void StepLoss::add(const Loss& given, const Loss& loss, std::span<const std::int64_t> ids) {
  if (losses_.empty()) layout_ = layout_of(given);
  if (layout_of(given) != layout_) fail_terms(" the terms of the loss differ between micro-batches");
  Loss kept = loss;
  for (LossTerm& term : kept.terms) term.sum = term.sum.detach();
  losses_.push_back({std::move(kept), {ids.begin(), ids.end()}});
}

Tally StepLoss::total() const {
  const std::vector<Tally> ranks = gather(mine());
  check(ranks);
  const Tally total = sum_of(ranks);
  for (std::size_t i = 0; i < static_cast<std::size_t>(total.num_terms); ++i) {
    if (total.terms.at(i).divisor() > 0) return total;
  }
  fail(ErrorKind::Data, str("training: the loss of step ", step_ + 1, " has a count of 0 on all ranks"),
       "the count is the number of samples (or tokens) in the sum");
}

void StepLoss::check(const std::vector<Tally>& ranks) const {
  const Tally* first = nullptr;  // with a micro-batch
  for (const Tally& rank : ranks) {
    if (!is_finite(rank)) fail_not_finite();
    if (is_exact_ && rank.num_batches != ranks[0].num_batches) {
      fail(ErrorKind::Data,
           str("training: in step ", step_ + 1, " ranks have ", ranks[0].num_batches, " and ", rank.num_batches,
               " shards"),
           "exact mode needs the same number on every rank: use a Sampler with Tail::Pad or Tail::Drop");
    }
    if (rank.num_batches == 0) continue;
    if (first == nullptr) first = &rank;
    if (rank.layout != first->layout) fail_terms(" the terms of the loss differ between ranks");
  }
}

void StepLoss::fail_terms(const char* what) const {
  fail(ErrorKind::Data, str("training: in step ", step_ + 1, what),
       "always return the same terms in the same order, with a count or without; a term without samples has a count of "
       "0");
}

std::vector<std::pair<std::string, double>> StepLoss::means(const Tally& total) const {
  std::vector<std::pair<std::string, double>> means;
  for (std::size_t i = 0; i < static_cast<std::size_t>(total.num_terms); ++i) {
    const Tally::Term& term = total.terms.at(i);
    const std::string name = losses_.empty() ? str("term ", i) : losses_.front().loss.terms[i].name;
    means.emplace_back(name, term.divisor() > 0 ? term.sum / term.divisor() : 0);
  }
  return means;
}

Tally StepLoss::mine() const {
  std::vector<Tally> tallies;
  for (const BatchLoss& batch : losses_) tallies.push_back(tally_of(batch.loss));
  Tally sum = sum_of(tallies);
  if (!losses_.empty()) sum.layout = 1 + static_cast<double>(crc32c(layout_));
  return sum;
}

// The tallies of all ranks.
std::vector<Tally> StepLoss::gather(const Tally& mine) const {
  const auto options = torch::TensorOptions(torch::kDouble);
  const Tensor all = torch::empty({comm_.world().size, kTallyNumbers}, options.device(comm_.device()));
  const Tensor own = torch::empty(kTallyNumbers, options);
  std::memcpy(own.mutable_data_ptr<double>(), &mine, sizeof(mine));
  comm_.all_gather(own.to(comm_.device()), all).wait();
  comm_.confirm();
  const Tensor host = all.cpu();
  std::vector<Tally> tallies(comm_.world().size);
  std::memcpy(static_cast<void*>(tallies.data()), host.const_data_ptr<double>(), tallies.size() * sizeof(Tally));
  return tallies;
}

// Called on every rank.
void StepLoss::fail_not_finite() const {
  std::string mine;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const auto& [loss, ids] = losses_[i];
    for (const LossTerm& term : loss.terms) {
      const double value = value_of(term);
      if (std::isfinite(value)) continue;
      const std::string name = loss.terms.size() > 1 ? str(term.name, " ") : "";
      mine += str(" on rank ", comm_.world().rank, ", micro-batch ", i, " (", name, describe(value, ids), ")");
    }
  }
  std::string where;
  for (const std::string& text : comm_.all_gather_bytes(mine)) where += text;
  fail(ErrorKind::Data, str("training: the loss of step ", step_ + 1, " is not finite", where),
       "check these samples, or lower the learning rate; earlier checkpoints are not affected");
}

}  // namespace tandem
