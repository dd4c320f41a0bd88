#include "train/step.h"

#include <tandem/error.h>
#include <tandem/optimizer.h>
#include <tandem/random_key.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "monitor/numbers.h"
#include "train/check_parts.h"

namespace tandem {
namespace {

using torch::Tensor;

bool is_count(double count) { return std::isfinite(count) && count >= 0; }

void check_loss(const Loss& loss) {
  if (loss.terms.empty() || loss.terms.size() > kMostTerms || !loss.terms.front().count) {
    fail(ErrorKind::Config,
         str("training: the loss of a micro-batch has ", counted(std::ssize(loss.terms), "term"),
             loss.terms.empty() ? "" : ", the first without a count"),
         str("give 1 to ", kMostTerms, " terms, the first with a count"));
  }
  for (const auto& [name, sum, count, weight, min_count] : loss.terms) {
    const bool is_scalar = sum.defined() && sum.numel() == 1;
    if (is_scalar && is_count(count.value_or(0)) && is_count(min_count) && std::isfinite(weight)) continue;
    fail(ErrorKind::Config,
         str("training: the loss term '", name, "' of a micro-batch has ",
             sum.defined() ? counted(sum.numel(), "element") : "no value", ", count ", count.value_or(0), ", weight ",
             weight),
         "give one element, the sum of the losses; a count of at least 0; and a finite weight");
  }
}

// The first term of each group of terms that share a count.
std::vector<std::size_t> groups_of(const Loss& loss) {
  std::vector<std::size_t> groups;
  for (std::size_t i = 0; i < loss.terms.size(); ++i) {
    if (loss.terms[i].count) groups.push_back(i);
  }
  return groups;
}

Loss with_all_counts(Loss loss) {
  for (std::size_t i = 1; i < loss.terms.size(); ++i) {
    LossTerm& term = loss.terms[i];
    if (term.count) continue;
    term.count = loss.terms[i - 1].count;
    term.min_count = loss.terms[i - 1].min_count;
  }
  return loss;
}

// The weighted sum of terms that share a count, before the division by it; undefined if none has a gradient.
Tensor objective_of(std::span<const LossTerm> terms) {
  Tensor objective;
  for (const LossTerm& term : terms) {
    if (!contributes(term) || !term.sum.requires_grad()) continue;
    const Tensor sum = term.weight == 1 ? term.sum : term.sum * term.weight;
    objective = objective.defined() ? objective + sum : sum;
  }
  return objective;
}

// Changes when a gradient is removed or written to.
GradientMark mark_of(const Optimizer& optimizer) {
  const std::vector<Tensor> gradients = optimizer.gradients();
  if (gradients.empty()) return {};
  return {.num_gradients = gradients.size(), .version = gradients.front()._version()};
}

// The first term with a count above 0: the gradient is divided by its count.
std::size_t reference_term(const Tally& total) {
  return std::ranges::find_if(total.terms, [](const auto& term) { return term.divisor() > 0; }) - total.terms.begin();
}

}  // namespace

Step::Step(Reducer& reducer, Optimizer& optimizer, LossScaler& scaler, std::vector<BatchName> batches,
           const StepOptions& options)
    : reducer_(reducer),
      optimizer_(optimizer),
      scaler_(scaler),
      options_(options),
      batches_(std::move(batches)),
      passes_before_(reducer.stats().passes),
      losses_(options, reducer.comm()),
      sums_(reducer),
      kept_(optimizer) {
  check_parts(reducer, optimizer, std::ssize(batches_), options.is_exact);
  reducer.set_step(options.step);
  if (options.is_exact && batches_.size() > 1) shards_.emplace(reducer, Buffers::Restart);
}

// Only the last micro-batch reduces gradients over ranks. In exact mode none does: `reduce` follows after their sum.
void Step::begin_batch() {
  if (shards_) {
    shards_->begin_shard();
  } else if (num_done_ + 1 < batches_.size()) {
    no_sync_.emplace(reducer_.no_sync());
  }
  const Communicator& comm = reducer_.comm();
  const std::size_t position = batches_.size() * static_cast<std::size_t>(comm.world().rank) + num_done_;
  const std::int64_t index = batches_[num_done_].index.value_or(static_cast<std::int64_t>(position));
  torch::manual_seed(options_.part == 0
                         ? random_key(options_.seed, Draw::MicroBatch, options_.step, index)
                         : random_key(options_.seed, Draw::MicroBatch, options_.step, index, options_.part));
  autocast_.emplace(comm.device().type(), scaler_.precision());
}

void Step::backward(const Loss& given) {
  autocast_.reset();
  check_loss(given);
  check_unchanged();
  groups_ = groups_of(given);
  const Loss loss = with_all_counts(given);
  losses_.add(given, loss, batches_[num_done_].ids);
  if (scaler_.needs_normalizer()) agree_on_normalizer(loss);
  if (groups_.size() > 1 && batches_.size() == 1 && !options_.is_exact) {
    differentiate_at_once(loss);
  } else {
    differentiate(loss);
  }
  if (shards_) shards_->end_shard();
  no_sync_.reset();
  ++num_done_;
  mark_ = mark_of(optimizer_);
  if (has_all()) complete();
}

void Step::check_unchanged() const {
  if (num_done_ > 0 && mark_of(optimizer_) != mark_) fail_changed();
}

void Step::fail_changed() const {
  fail(ErrorKind::Config,
       str("training: the gradients of step ", options_.step + 1, " were changed before it was complete"),
       "leave out module->zero_grad(): a step begins without gradients; change them after its last micro-batch only");
}

std::span<const LossTerm> Step::terms_of_group(const Loss& loss, std::size_t group) const {
  const std::size_t end = group + 1 == groups_.size() ? loss.terms.size() : groups_[group + 1];
  return std::span(loss.terms).subspan(groups_[group], end - groups_[group]);
}

// Before the first backward pass: one for all groups whose total counts are known already, one for each other group.
void Step::plan_passes(const Loss& loss) {
  if (groups_.size() > 1) known_ = losses_.known_total(batches_);
  double reference = 0;  // the first of these counts
  Pass together;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const LossTerm& term = loss.terms[groups_[g]];
    const auto known = std::ranges::find(known_, term.name, &KnownCount::term);
    if (known == known_.end()) {
      passes_.push_back({{.group = g}});
      continue;
    }
    known->count = std::max(known->count, term.min_count);
    if (reference == 0) reference = known->count;
    together.push_back({.group = g, .factor = known->count > 0 ? reference / known->count : 0});
  }
  if (!together.empty()) passes_.insert(passes_.begin(), std::move(together));
}

void Step::differentiate(const Loss& loss) {
  if (passes_.empty()) plan_passes(loss);
  if (passes_.size() > 1 && !shards_) {
    shards_.emplace(reducer_, options_.is_exact ? Buffers::Restart : Buffers::Continue);
    shards_->begin_shard();
  }
  for (std::size_t p = 0; p < passes_.size(); ++p) {
    const Tensor sum = weighted_sum(loss, passes_[p]);
    if (sum.defined()) scaler_.scaled(sum).backward({}, /*retain_graph=*/p + 1 < passes_.size());
    if (shards_) shards_->take(p);
  }
}

// Every rank has one micro-batch, so that the total counts can be known before the backward pass: one pass does it.
void Step::differentiate_at_once(const Loss& loss) {
  counted_ = losses_.total();
  const std::vector<double> factors = group_factors(*counted_);
  Pass all;
  for (std::size_t g = 0; g < groups_.size(); ++g) all.push_back({.group = g, .factor = factors[g]});
  const Tensor sum = weighted_sum(loss, all);
  if (sum.defined()) scaler_.scaled(sum).backward();
}

// Undefined if no term of the pass has a gradient.
Tensor Step::weighted_sum(const Loss& loss, const Pass& pass) const {
  Tensor sum;
  for (const auto& [group, factor] : pass) {
    const Tensor objective = objective_of(terms_of_group(loss, group));
    if (!objective.defined()) continue;
    const Tensor weighted = factor == 1 ? objective : objective * factor;
    sum = sum.defined() ? sum + weighted : weighted;
  }
  return sum;
}

StepResult Step::update(double lr, double max_norm) {
  if (!std::isfinite(lr)) {
    fail(ErrorKind::Config, str("training: the learning rate of step ", options_.step + 1, " is ", lr),
         "give a finite number");
  }
  complete();
  const std::vector<Tensor> gradients = optimizer_.gradients();
  if (gradients.size() != num_gradients_) fail_changed();
  const Tensor norm = global_norm(gradients);
  const Tensor overflow = overflow_.defined() ? torch::maximum(overflow_, found_inf(norm)) : found_inf(norm);
  optimizer_.update(lr, max_norm > 0 ? clip_coefficient(norm, max_norm).reciprocal() : Tensor(), overflow);
  scaler_.update(overflow);
  StepResult result{.terms = losses_.means(*total_),
                    .count = total_->terms[0].count,
                    .work = static_cast<std::int64_t>(total_->work),
                    .norm = norm.item<double>()};
  result.was_skipped = !std::isfinite(result.norm) || (overflow_.defined() && overflow_.item<float>() != 0);
  for (const auto& [name, mean] : result.terms) result.loss += mean;
  check_result(result);
  return result;
}

// Users may change gradients from here on, and clipping by value would hide an overflow: it is noticed before.
void Step::complete() {
  if (total_) return;
  if (batches_.empty() && scaler_.needs_normalizer()) agree_on_normalizer(Loss(std::vector<LossTerm>()));
  total_ = reduce();
  const std::vector<Tensor> gradients = optimizer_.gradients();
  if (gradients.empty()) {
    fail(ErrorKind::Data,
         str("training: the loss of step ", options_.step + 1, " does not depend on any parameter, on any rank"),
         "compute it from the output of the DistributedDataParallel, without detach() or NoGradGuard");
  }
  num_gradients_ = gradients.size();
  if (scaler_.is_on()) overflow_ = found_inf(global_norm(gradients));
  const double count = total_->terms[reference_term(*total_)].divisor();
  const Tensor divisor = scaler_.divisor(torch::full({}, count, gradients.front().options().dtype(torch::kFloat)));
  const torch::NoGradGuard no_grad;
  torch::_foreach_div_(gradients, divisor);
}

// Leaves the sum over all ranks in `.grad`. Divided by the count of the reference term it is the gradient of the mean.
Tally Step::reduce() {
  if (shards_ && passes_.size() > 1) {
    const Tally total = losses_.total();
    shards_->reduce(pass_factors(total));
    return total;
  }
  if (shards_) {
    shards_->reduce(std::vector<double>(1, 1.0));
  } else {
    reducer_.finish();
    if (reducer_.stats().passes == passes_before_) reducer_.reduce();  // the model was not called: contributes zeros
  }
  if (counted_) return *counted_;
  const Tally total = losses_.total();
  check_known(total);
  return total;
}

// Each group is divided by its own total count instead of that of the reference term.
std::vector<double> Step::group_factors(const Tally& total) const {
  const double reference = total.terms[reference_term(total)].divisor();
  std::vector<double> factors;
  for (const std::size_t term : groups_) {
    const double divisor = total.terms[term].divisor();
    factors.push_back(divisor > 0 ? reference / divisor : 0);
  }
  return factors;
}

// The same for each pass, whose groups are already scaled to the count of the first of them.
std::vector<double> Step::pass_factors(const Tally& total) const {
  check_known(total);
  const std::vector<double> by_group = group_factors(total);
  std::vector<double> factors;
  for (const Pass& pass : passes_) {
    const auto first = std::ranges::find_if(pass, [](const WeightedGroup& part) { return part.factor == 1; });
    factors.push_back(by_group[first == pass.end() ? pass.front().group : first->group]);
  }
  return factors;
}

void Step::check_known(const Tally& total) const {
  for (const std::size_t term : groups_) {
    const std::string name = losses_.name_of(term);
    const auto known = std::ranges::find(known_, name, &KnownCount::term);
    constexpr double kRounding = 1e-6;
    const double count = total.terms[term].divisor();
    if (known == known_.end() || std::abs(known->count - count) <= kRounding * count) continue;
    fail(ErrorKind::Data,
         str("training: the loss term '", name, "' of step ", options_.step + 1, " has a count of ", count,
             ", but its batches gave ", known->count, " as known"),
         "give in `counts` of a batch what the loss returns as count, or leave the term out there");
  }
}

// Called on every rank before the first backward pass of a scaled loss. Rank 0 decides by its first micro-batch, which
// is the same on any number of ranks: by the first term that has samples there.
void Step::agree_on_normalizer(const Loss& loss) {
  Communicator& comm = reducer_.comm();
  const auto first = std::ranges::find_if(loss.terms, [](const LossTerm& term) { return *term.count > 0; });
  const double count = first == loss.terms.end() ? 0 : *first->count;
  const auto num_batches = static_cast<std::int64_t>(batches_.size()) * comm.world().size;
  const auto estimate = static_cast<std::int64_t>(count * static_cast<double>(num_batches));
  const Tensor agreed = torch::full({}, estimate, torch::device(comm.device()).dtype(torch::kLong));
  comm.broadcast(agreed).wait();
  comm.confirm();
  scaler_.normalize_by(std::max<std::int64_t>(agreed.item<std::int64_t>(), 1));
}

void Step::check_result(const StepResult& result) const {
  if (!result.was_skipped) return;
  if (!scaler_.is_on()) {
    fail(ErrorKind::Data, str("training: the gradient of step ", options_.step + 1, " is not finite, but its loss is"),
         "lower the learning rate, or clip gradients; earlier checkpoints are not affected");
  }
  constexpr double kFloor = 1.0 / 1024;  // below this, the scale is not the cause of the overflow
  if (scaler_.scale() < kFloor) {
    fail(ErrorKind::Data, str("training: the gradient of step ", options_.step + 1, " is not finite at any loss scale"),
         "lower the learning rate, or use --precision bf16 or fp32; earlier checkpoints are not affected");
  }
}

StepResult detail::train_step(Reducer& reducer, Optimizer& optimizer, LossScaler& scaler,
                              std::span<const MicroBatch> micro_batches, const StepOptions& options) {
  std::vector<BatchName> names;
  for (const MicroBatch& micro_batch : micro_batches) names.push_back(micro_batch.name);
  Step step(reducer, optimizer, scaler, std::move(names), options);
  for (const MicroBatch& micro_batch : micro_batches) {
    step.begin_batch();
    step.backward(micro_batch.loss());
  }
  step.complete();
  if (options.on_gradients) options.on_gradients();
  return step.update(options.lr, options.max_norm);
}

}  // namespace tandem
