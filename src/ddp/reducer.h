#pragma once

#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ddp/bucket.h"
#include "ddp/gradient_hook.h"

namespace tandem {

using NamedTensor = std::pair<std::string, torch::Tensor>;

// Reduces gradients over the ranks while the backward pass is still running. Gradients are views into buckets; the
// all-reduce of a bucket starts when all its gradients are ready. A pass begins with the first gradient of a
// `backward()` and is complete when that returns.
class Reducer : public std::enable_shared_from_this<Reducer> {
 public:
  // `parameters`: each tensor once, all on one device; those without requires_grad are not reduced.
  Reducer(const std::vector<NamedTensor>& parameters, std::vector<torch::Tensor> buffers, Communicator& comm,
          const DdpOptions& options);
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  void begin_forward();
  NoSync no_sync() { return NoSync(no_sync_depth_); }
  void finish();
  const DdpStats& stats() const { return stats_; }

  // For train_step. Defaults: the sum is divided by the world size; the step is incremented by each pass.
  void set_divisor(double divisor) { divisor_ = divisor; }
  void set_step(std::int64_t step) { step_ = step; }

  // Reduces the `.grad`s that were accumulated since the last pass, as a backward pass would.
  void reduce();
  void reduce_present();  // all that are defined, whenever they were computed

  Communicator& comm() const { return comm_; }
  const DdpOptions& options() const { return options_; }
  const std::vector<torch::Tensor>& buffers() const { return buffers_; }
  std::vector<torch::Tensor> trained_parameters() const;
  bool is_frozen() const;  // no parameter requires grad now, for example while another part is trained

 private:
  // A parameter and its slice of a bucket.
  struct Slot {
    std::string name;
    torch::Tensor parameter;
    torch::Tensor slice;
    std::size_t bucket = 0;
    bool is_ready = false;  // in this pass
    bool has_news = false;  // `.grad` was accumulated since the last synchronized pass
  };

  void make_buckets(std::span<const std::size_t> order);
  void check_last_pass() const;
  void check_parameters() const;

  void on_gradient(std::size_t index);
  void check_backward() const;
  void begin_pass();
  void move_into_bucket(std::size_t index);
  void mark_ready(std::size_t index);
  void launch_full_buckets();

  void complete_pass();
  std::vector<std::size_t> fill_unused();
  void wait_for_peers();
  void take_from_peers(std::span<const std::size_t> unused);
  void warn_of_unused(const std::string& names);
  void agree_on_order();

  Communicator& comm_;
  DdpOptions options_;
  double divisor_;
  std::int64_t step_ = 0;
  std::vector<Slot> slots_;
  std::vector<NamedTensor> frozen_;
  std::vector<torch::Tensor> buffers_;
  std::vector<Bucket> buckets_;
  torch::Tensor usage_;  // reduced with the last bucket: 1 for each parameter used on this rank

  std::optional<int> pass_;               // graph task of the pass in progress
  std::vector<std::size_t> num_missing_;  // gradients not ready yet, per bucket
  std::size_t next_bucket_ = 0;
  std::int64_t num_forwards_ = 0;  // without a backward pass yet
  bool is_awaited_ = false;        // no gradient since the last forward
  int no_sync_depth_ = 0;
  std::vector<std::size_t> ready_order_;  // of the first pass
  std::set<std::string> warned_;          // parameter names of the warnings so far
  DdpStats stats_;
  std::vector<GradientHook> hooks_;  // last member: destroyed first
};

}  // namespace tandem
