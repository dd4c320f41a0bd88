#pragma once

#include <tandem/run_options.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

// Tokens, samples or images per second; 0 if no time passed.
double tokens_per_second(std::int64_t tokens, double seconds);

// The peak performance of a device in FLOP/s, and its source.
struct Peak {
  double flops = 0;
  std::string source;

  std::string text() const;  // "65 TFLOP/s a device (Tesla T4, fp16)"
};

// By the driver's name of the device ("Tesla T4", "NVIDIA A100-SXM4-80GB") and the precision of matrix products: fp32,
// tf32, bf16, fp16. Dense, without sparsity. Nothing for a device that is not in the table, for a MIG slice, and for a
// precision that the device does not support.
std::optional<Peak> find_peak(std::string_view device_name, std::string_view precision);

// Of a CPU, from the measured matrix products of one of its cores. `cores` are those of a rank, and may be a fraction.
Peak measured_peak(double flops_per_core, double cores, std::string_view device_name);

// From the options, else from the table.
std::optional<Peak> choose_peak(const PeakOptions& options, std::string_view device_name, std::string_view precision);

// Model FLOP utilisation: the model's FLOP/s as a fraction of the devices' peak.
double mfu(double flops_per_second, double peak_flops);

// "41.3%"; "n/a" above 100 %, which means that an input is wrong.
std::string mfu_text(double mfu);

// The speed of one step.
struct Speed {
  double per_second = 0;
  std::optional<double> mfu = {};
  std::string warning = {};  // set on the first step whose mfu is above 100 %
};

// The speed of a run, from step to step.
class Meter {
 public:
  // `flops_per_token` (or sample) is the model's count, forward and backward. Without it or without a peak there is no
  // mfu. Ranks that share a GPU count as one device.
  explicit Meter(double flops_per_token = 0, std::optional<Peak> peak = {}, int num_devices = 1);

  // The tokens of one step on all ranks, without padding, and the time of the step.
  Speed add(std::int64_t tokens, double seconds);

  // Estimated seconds for so many more steps, from the last ones.
  double eta(std::int64_t num_steps) const;

 private:
  double flops_per_token_;
  std::optional<Peak> peak_;
  int num_devices_;
  bool has_warned_ = false;
  std::deque<double> last_seconds_;
};

}  // namespace tandem
