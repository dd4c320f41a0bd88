#pragma once

#include <tandem/accelerator.h>
#include <tandem/detail/loop.h>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// Reads the steps of a run, one by one.
template <class Samples>
class StepReader {
 public:
  using Step = decltype(std::declval<Samples&>().next());

  StepReader(Accelerator& accelerator, Samples& samples) : accelerator_(accelerator), samples_(samples) {}
  StepReader(const StepReader&) = delete;
  StepReader& operator=(const StepReader&) = delete;
  ~StepReader() { accelerator_.end_loop(); }

  // The micro-batches of this rank; empty: the run has ended.
  Step read() {
    const auto begin = std::chrono::steady_clock::now();
    if (!accelerator_.has_next()) return {};
    Step step = samples_.next();
    std::vector<BatchName> names;
    for (const auto& batch : step) names.push_back(detail::name_of(batch));
    accelerator_.begin_step(std::move(names), std::chrono::steady_clock::now() - begin);
    return step;
  }

 private:
  Accelerator& accelerator_;
  Samples& samples_;
};

// The micro-batches of this rank, of all steps. Can be iterated once.
template <class Samples>
class Batches {
 public:
  using Step = typename StepReader<Samples>::Step;

  Batches(Accelerator& accelerator, Samples& samples) : accelerator_(accelerator), reader_(accelerator, samples) {}

  detail::LoopIterator<Batches> begin() {
    step_ = reader_.read();
    return detail::LoopIterator(*this);
  }
  detail::LoopEnd end() const { return {}; }

 private:
  friend class detail::LoopIterator<Batches>;
  const typename Step::value_type& current() const { return step_[index_]; }
  bool is_over() const { return step_.empty(); }

  void advance() {
    accelerator_.next_batch();
    if (++index_ < step_.size()) return;
    accelerator_.end_step();
    index_ = 0;
    step_ = reader_.read();
  }

  Accelerator& accelerator_;
  StepReader<Samples> reader_;
  Step step_;
  std::size_t index_ = 0;
};

// The steps of a run, each of which trains one or several named parts:
//
//   auto d = accelerator.prepare("discriminator", discriminator);
//   accelerator.prepare("discriminator", d_optimizer);       // and the same for the generator
//   for (auto& step : accelerator.steps(sampler)) {
//     step.train("discriminator", {.lr = lr}, [&](const auto& batch) { return discriminator_loss(batch); });
//     step.train("generator", {.lr = lr}, [&](const auto& batch) { return generator_loss(batch); });
//   }
//
// Can be iterated once.
template <class Samples>
class Steps {
 public:
  using Step = typename StepReader<Samples>::Step;

  Steps(Accelerator& accelerator, Samples& samples) : accelerator_(accelerator), reader_(accelerator, samples) {}

  std::int64_t index() const { return index_; }  // of this step, from 0: for a learning rate schedule
  const Step& batches() const { return step_; }  // the micro-batches of this rank

  // One update of the part, as by train_step: `loss_fn` gets a micro-batch and returns a LossSum or a Loss. Gradients
  // of the other parts are neither computed nor reduced, and their buffers do not change.
  template <class LossFn>
  StepResult train(std::string_view part, const UpdateOptions& options, LossFn&& loss_fn) {
    return accelerator_.train_part(part, detail::micro_batches(step_, loss_fn), options);
  }

  detail::LoopIterator<Steps> begin() {
    read();
    return detail::LoopIterator(*this);
  }
  detail::LoopEnd end() const { return {}; }

 private:
  friend class detail::LoopIterator<Steps>;
  Steps& current() { return *this; }
  bool is_over() const { return step_.empty(); }

  void advance() {
    accelerator_.end_step();
    read();
  }

  void read() {
    step_ = reader_.read();
    index_ = accelerator_.completed_steps();
  }

  Accelerator& accelerator_;
  StepReader<Samples> reader_;
  Step step_;
  std::int64_t index_ = 0;
};

}  // namespace tandem
