#pragma once

#include <tandem/accelerator.h>

namespace tandem {

// Options of a short training without output, on one thread.
inline AcceleratorOptions options_of(const BatchOptions& batch, std::int64_t max_steps = 6) {
  AcceleratorOptions options;
  options.precision = Precision::Fp32;
  options.batch = batch;
  options.training.epochs = 100;
  options.training.max_steps = max_steps;
  options.training.seed = 5;
  options.training.threads = 1;
  options.monitor.progress.progress = false;
  return options;
}

}  // namespace tandem
