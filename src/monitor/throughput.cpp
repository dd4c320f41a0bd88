#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check_range.h"
#include "base/text.h"
#include "monitor/numbers.h"
#include "monitor/throughput.h"

namespace tandem {
namespace {

constexpr double kTera = 1e12;

// Dense TFLOP/s from NVIDIA's data sheets; if only the number with sparsity is given, half of it. H100 and H200 SXM are
// from the H100 white paper. 0: not supported.
struct Device {
  std::string_view model, form;  // words of the name; empty form: any
  double fp32, tf32, bf16, fp16;
};

// The first match is used.
constexpr std::array<Device, 13> kDevices = {{
    {"T4", "", 8.1, 0, 0, 65},
    {"P100", "PCIE", 9.3, 0, 0, 18.7},
    {"P100", "", 10.6, 0, 0, 21.2},
    {"V100", "PCIE", 14, 0, 0, 112},
    {"V100", "", 15.7, 0, 0, 125},
    {"V100S", "", 16.4, 0, 0, 130},
    {"A100", "", 19.5, 156, 312, 312},
    {"H100", "PCIe", 51, 378, 756.5, 756.5},
    {"H100", "NVL", 60, 417.5, 835.5, 835.5},
    {"H100", "", 66.9, 494.7, 989.4, 989.4},
    {"H200", "NVL", 60, 417.5, 835.5, 835.5},
    {"H200", "", 66.9, 494.7, 989.4, 989.4},
    {"L4", "", 30.3, 60, 121, 121},
}};

double tflops_of(const Device& device, std::string_view precision) {
  if (precision == "fp32") return device.fp32;
  if (precision == "tf32") return device.tf32;
  if (precision == "bf16") return device.bf16;
  return precision == "fp16" ? device.fp16 : 0;
}

bool is_called(const Device& device, const std::vector<std::string>& words) {
  const auto has = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
  return has(device.model) && (device.form.empty() || has(device.form)) && !has("MIG");
}

std::string tflops_text(double flops) { return str(fit(flops / kTera, 4, 2), " TFLOP/s"); }

}  // namespace

double tokens_per_second(std::int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

std::string Peak::text() const { return str(tflops_text(flops), " a device (", source, ")"); }

std::optional<Peak> find_peak(std::string_view device_name, std::string_view precision) {
  const std::vector<std::string> words = split(replace_all(std::string(device_name), "-", " "), ' ');
  const auto* found = std::ranges::find_if(kDevices, [&](const Device& device) { return is_called(device, words); });
  if (found == kDevices.end() || tflops_of(*found, precision) == 0) return std::nullopt;
  return Peak{tflops_of(*found, precision) * kTera, str(device_name, ", ", precision)};
}

Peak measured_peak(double flops_per_core, double cores, std::string_view device_name) {
  return {flops_per_core * cores, str(device_name, ", measured: ", fit(cores, 3, cores == std::floor(cores) ? 0 : 2),
                                      cores == 1 ? " core" : " cores", " x ", tflops_text(flops_per_core))};
}

void validate(const PeakOptions& options) {
  const double peak = options.peak_tflops.value_or(1);
  if (peak > 0 && peak <= kMostNumber) return;
  fail(ErrorKind::Config, str("peak-tflops is ", *options.peak_tflops), "give a positive number, or omit it");
}

std::optional<Peak> choose_peak(const PeakOptions& options, std::string_view device_name, std::string_view precision) {
  if (options.peak_tflops) return Peak{*options.peak_tflops * kTera, "--peak-tflops"};
  return find_peak(device_name, precision);
}

double mfu(double flops_per_second, double peak_flops) { return flops_per_second / peak_flops; }

std::string mfu_text(double mfu) { return mfu >= 0 && mfu <= 1 ? str(fixed(mfu * 100, 1), '%') : "n/a"; }

Meter::Meter(double flops_per_token, std::optional<Peak> peak, int num_devices)
    : flops_per_token_(flops_per_token), peak_(std::move(peak)), num_devices_(num_devices) {}

Speed Meter::add(std::int64_t tokens, double seconds) {
  constexpr std::size_t kWindow = 20;
  last_seconds_.push_back(seconds);
  if (last_seconds_.size() > kWindow) last_seconds_.pop_front();

  Speed speed{.per_second = tokens_per_second(tokens, seconds)};
  if (flops_per_token_ <= 0 || !peak_) return speed;
  const double flops = speed.per_second * flops_per_token_;
  speed.mfu = mfu(flops, peak_->flops * num_devices_);
  if (*speed.mfu > 1 && !has_warned_) {
    has_warned_ = true;
    speed.warning = str("mfu would be ", fixed(*speed.mfu * 100, 0), "%: the model ran ", tflops_text(flops), " on ",
                        counted(num_devices_, "device"), ", and the peak is ", peak_->text(),
                        "; the FLOPs, the tokens or samples of a step, or the peak is wrong (--peak-tflops sets it)");
  }
  return speed;
}

double Meter::eta(std::int64_t num_steps) const {
  if (last_seconds_.empty()) return 0;
  const double total = std::accumulate(last_seconds_.begin(), last_seconds_.end(), 0.0);
  return total / static_cast<double>(last_seconds_.size()) * static_cast<double>(num_steps);
}

}  // namespace tandem
