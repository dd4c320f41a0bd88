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

std::string layout_of(std::span<const KnownCount> counts) {
  std::string layout;
  for (const KnownCount& known : counts) layout += str(known.term, '\n');
  return layout;
}

constexpr double kNoLayout = -1;

double hash_of(const std::string& layout) { return 1 + static_cast<double>(crc32c(layout)); }

Tally tally_of(std::span<const KnownCount> counts) {
  Tally tally{.num_batches = 1, .num_terms = static_cast<double>(counts.size())};
  for (std::size_t i = 0; i < counts.size(); ++i) tally.terms.at(i).count = counts[i].count;
  return tally;
}

Tally tally_of(const Loss& loss, const std::vector<bool>& attached) {
  Tally tally{.num_batches = 1, .num_terms = static_cast<double>(loss.terms.size())};
  for (std::size_t i = 0; i < loss.terms.size(); ++i) {
    const LossTerm& term = loss.terms[i];
    const double value = value_of(term);
    tally.terms.at(i) = {.sum = value,
                         .count = *term.count,
                         .min_count = term.min_count,
                         .num_attached = attached[i] ? 1.0 : 0.0,
                         .num_detached = attached[i] || value == 0 ? 0.0 : 1.0};
  }
  tally.work = loss.work > 0 ? static_cast<double>(loss.work) : *loss.terms.front().count;
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
                    .min_count = std::max(a.terms[i].min_count, b.terms[i].min_count),
                    .num_attached = a.terms[i].num_attached + b.terms[i].num_attached,
                    .num_detached = a.terms[i].num_detached + b.terms[i].num_detached};
  }
  return sum;
}

void StepLoss::add(const Loss& given, const Loss& loss, std::span<const std::int64_t> ids) {
  if (losses_.empty()) layout_ = layout_of(given);
  if (layout_of(given) != layout_) fail_terms(" the terms of the loss differ between micro-batches");
  BatchLoss& kept = losses_.emplace_back(BatchLoss{loss, {}, {ids.begin(), ids.end()}});
  for (LossTerm& term : kept.loss.terms) {
    kept.attached.push_back(term.sum.requires_grad());
    term.sum = term.sum.detach();
  }
}

std::vector<KnownCount> StepLoss::known_total(std::span<const BatchName> batches) const {
  const std::span<const KnownCount> first = batches.front().counts;
  const bool is_uniform = first.size() <= kMostTerms && std::ranges::all_of(batches, [&](const BatchName& batch) {
                            return layout_of(batch.counts) == layout_of(first);
                          });
  std::vector<Tally> tallies;
  for (const BatchName& batch : batches) tallies.push_back(is_uniform ? tally_of(batch.counts) : Tally());
  Tally mine = sum_of(tallies);
  mine.num_batches = static_cast<double>(batches.size());
  mine.layout = is_uniform ? hash_of(layout_of(first)) : kNoLayout;
  const std::vector<Tally> ranks = gather(mine);
  check(ranks);
  if (!is_uniform) fail_terms(" the known counts of terms differ between micro-batches");
  const Tally total = sum_of(ranks);
  std::vector<KnownCount> known(first.begin(), first.end());
  for (std::size_t i = 0; i < known.size(); ++i) known[i].count = total.terms.at(i).count;
  return known;
}

Tally StepLoss::total() const {
  const std::vector<Tally> ranks = gather(mine());
  check(ranks);
  const Tally total = sum_of(ranks);
  bool has_count = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(total.num_terms); ++i) {
    check_term(total, i);
    has_count = has_count || total.terms.at(i).divisor() > 0;
  }
  if (has_count) return total;
  fail(ErrorKind::Data, str("training: the loss of step ", step_ + 1, " has a count of 0 on all ranks"),
       "the count is the number of samples (or tokens) in the sum");
}

// Called on every rank, with the same total.
void StepLoss::check_term(const Tally& total, std::size_t index) const {
  const Tally::Term& term = total.terms.at(index);
  const std::string name = total.num_terms > 1 ? str(" term '", name_of(index), "'") : "";
  if (term.divisor() == 0 && term.sum != 0) {
    fail(ErrorKind::Data,
         str("training: the loss", name, " of step ", step_ + 1, " is ", term.sum, ", but its count is 0 on all ranks"),
         "the count is the number of samples (or tokens) in the sum; if a whole step may have none, give the term a "
         "min_count, such as 1");
  }
  if (term.num_attached > 0 && term.num_detached > 0) {
    const std::string where = places([&](const BatchLoss& batch, std::size_t i) {
      return i == index && !batch.attached[i] && value_of(batch.loss.terms[i]) != 0;
    });
    fail(ErrorKind::Data, str("training: the loss", name, " of step ", step_ + 1, " has no gradient", where),
         "elsewhere it has one: compute it from the output of the DistributedDataParallel everywhere, without detach() "
         "or NoGradGuard");
  }
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

std::string StepLoss::name_of(std::size_t term) const {
  return losses_.empty() ? str("term ", term) : losses_.front().loss.terms[term].name;
}

std::vector<std::pair<std::string, double>> StepLoss::means(const Tally& total) const {
  std::vector<std::pair<std::string, double>> means;
  for (std::size_t i = 0; i < static_cast<std::size_t>(total.num_terms); ++i) {
    const Tally::Term& term = total.terms.at(i);
    means.emplace_back(name_of(i), term.divisor() > 0 ? term.sum / term.divisor() : 0);
  }
  return means;
}

Tally StepLoss::mine() const {
  std::vector<Tally> tallies;
  for (const BatchLoss& batch : losses_) tallies.push_back(tally_of(batch.loss, batch.attached));
  Tally sum = sum_of(tallies);
  if (!losses_.empty()) sum.layout = hash_of(layout_);
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

void StepLoss::fail_not_finite() const {
  const std::string where =
      places([](const BatchLoss& batch, std::size_t i) { return !std::isfinite(value_of(batch.loss.terms[i])); });
  fail(ErrorKind::Data, str("training: the loss of step ", step_ + 1, " is not finite", where),
       "check these samples, or lower the learning rate; earlier checkpoints are not affected");
}

// " on rank 1, micro-batch 0 (box nan; samples 3 17)": the terms of all ranks that are so. Called on every rank.
std::string StepLoss::places(const std::function<bool(const BatchLoss&, std::size_t)>& is_so) const {
  std::string mine;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const std::vector<LossTerm>& terms = losses_[i].loss.terms;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (!is_so(losses_[i], t)) continue;
      const std::string name = terms.size() > 1 ? str(terms[t].name, " ") : "";
      mine += str(" on rank ", comm_.world().rank, ", micro-batch ", i, " (", name,
                  describe(value_of(terms[t]), losses_[i].ids), ")");
    }
  }
  std::string all;
  for (const std::string& text : comm_.all_gather_bytes(mine)) all += text;
  return all;
}

bool contributes(const LossTerm& term) {
  return *term.count > 0 || term.min_count > 0 || std::isfinite(term.sum.item<double>());
}

}  // namespace tandem
