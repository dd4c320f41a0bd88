#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

// Tokens, samples or images, in the time they took. 0 where no time passed.
double tokens_per_second(std::int64_t tokens, double seconds);

// The most floating-point operations a second that a device can do, and who says so.
struct Peak {
  double flops = 0;
  std::string source;

  std::string text() const;  // "65 TFLOP/s a device (Tesla T4, fp16)"
};

// By the name that the driver gives the device ("Tesla T4", "NVIDIA A100-SXM4-80GB") and the precision of its matrix
// products: fp32, tf32, bf16, fp16. Dense, without the sparsity that doubles advertised numbers. Nothing for a device
// that is not in the table, for a slice of one (MIG), and for a precision that its matrix units do not have.
std::optional<Peak> find_peak(std::string_view device_name, std::string_view precision);

// Of a device that no table knows, such as this CPU, by measuring its matrix products.
Peak measured_peak(double flops_per_second, std::string_view device_name);

struct PeakOptions {
  std::optional<double> peak_tflops = {};
};

template <class Visitor>
void visit_fields(PeakOptions& o, Visitor&& field) {
  field("peak-tflops", o.peak_tflops,
        "TFLOP/s of one device, that mfu is measured against; default: a table by its name");
}

void validate(const PeakOptions& options);

// What the user gave, else what the table says.
std::optional<Peak> choose_peak(const PeakOptions& options, std::string_view device_name, std::string_view precision);

// Model FLOP utilisation: the share of the devices' peak that goes into the model's own operations.
double mfu(double flops_per_second, double peak_flops);

// "41.3%". Above 100 % a number in it is wrong, so it is "n/a".
std::string mfu_text(double mfu);

// What a Meter found in one step.
struct Speed {
  double per_second = 0;
  std::optional<double> mfu = {};
  std::string warning = {};  // empty but for the first step whose mfu is impossible
};

// The speed of a run, from step to step.
class Meter {
 public:
  // `flops_per_token` (or sample) is the model's own count, forward and backward. Without it, or without a peak, there
  // is no mfu. Ranks that share a GPU are one device.
  explicit Meter(double flops_per_token = 0, std::optional<Peak> peak = {}, int num_devices = 1);

  // The tokens of one step on all ranks, padding left out, and the time of the whole step.
  Speed add(std::int64_t tokens, double seconds);

  // Seconds that so many steps will take: as long as the last ones.
  double eta(std::int64_t num_steps) const;

 private:
  double flops_per_token_;
  std::optional<Peak> peak_;
  int num_devices_;
  bool has_warned_ = false;
  std::deque<double> last_seconds_;
};

}  // namespace tandem
