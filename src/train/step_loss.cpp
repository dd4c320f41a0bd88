#include "train/step_loss.h"

#include <tandem/error.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "base/text.h"
#include "train/tree_sum.h"

namespace tandem {
namespace {

using torch::Tensor;

Tally sum_of(std::span<const Tally> tallies) {
  if (tallies.empty()) return {};
  TreeSum<Tally, std::plus<>> sum((std::plus<>()));
  for (const Tally& tally : tallies) sum.add(tally);
  return sum.total();
}

constexpr std::size_t kMostIds = 16;

// "nan; samples 3 17"
std::string describe(double loss, std::span<const std::int64_t> ids) {
  std::string text = std::isnan(loss) ? "nan" : str(loss);  // whatever its sign
  if (!ids.empty()) text += "; samples";
  for (const std::int64_t id : ids.first(std::min(ids.size(), kMostIds))) text += str(" ", id);
  if (ids.size() > kMostIds) text += str(" and ", ids.size() - kMostIds, " more");
  return text;
}

}  // namespace

Tally StepLoss::total() const {
  const std::vector<Tally> ranks = gather(mine());
  for (const Tally& rank : ranks) {
    if (!std::isfinite(rank.sum)) fail_not_finite();
    if (is_exact_ && rank.num_batches != ranks[0].num_batches) {
      fail(ErrorKind::Data,
           str("training: in step ", step_ + 1, " ranks have ", ranks[0].num_batches, " and ", rank.num_batches,
               " shards"),
           "exact mode needs equally many on every rank: a Sampler with Tail::Pad or Tail::Drop");
    }
  }
  const Tally total = sum_of(ranks);
  if (total.count > 0) return total;
  fail(ErrorKind::Data, str("training: the losses of step ", step_ + 1, " count nothing"),
       "the count of a LossSum is the number of samples (or tokens) in its sum");
}

Tally StepLoss::mine() const {
  std::vector<Tally> tallies;
  for (const BatchLoss& loss : losses_) {
    const std::int64_t work = std::max(loss.work, loss.count);
    tallies.push_back({loss.value(), static_cast<double>(loss.count), static_cast<double>(work), 1});
  }
  return sum_of(tallies);
}

// One of each rank.
std::vector<Tally> StepLoss::gather(const Tally& mine) const {
  const auto options = torch::TensorOptions(torch::kDouble).device(comm_.device());
  const Tensor all = torch::empty({comm_.world().size, 4}, options);
  comm_.all_gather(torch::tensor({mine.sum, mine.count, mine.work, mine.num_batches}, options), all).wait();
  comm_.confirm();
  const Tensor host = all.cpu();
  std::vector<Tally> tallies;
  for (std::int64_t rank = 0; rank < host.size(0); ++rank) {
    const double* row = host[rank].const_data_ptr<double>();
    tallies.push_back({row[0], row[1], row[2], row[3]});
  }
  return tallies;
}

// Every rank comes here.
void StepLoss::fail_not_finite() const {
  std::string mine;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const double loss = losses_[i].value();
    if (std::isfinite(loss)) continue;
    mine += str(" on rank ", comm_.world().rank, ", micro-batch ", i, " (", describe(loss, losses_[i].ids), ")");
  }
  std::string where;
  for (const std::string& text : comm_.all_gather_bytes(mine)) where += text;
  fail(ErrorKind::Data, str("training: the loss of step ", step_ + 1, " is not finite", where),
       "look at these samples, or lower the learning rate; what --save-every has saved before is good");
}

}  // namespace tandem
