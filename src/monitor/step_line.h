#pragma once

#include <tandem/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// The numbers of one step.
struct StepReport {
  std::int64_t step = 0;  // steps done, including this one
  std::int64_t num_steps = 0;
  std::int64_t epoch = 0;  // from 1
  std::int64_t num_epochs = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> terms = {};  // of the loss; shown if there are several
  double norm = 0;
  double lr = 0;
  double seconds = 0;     // duration of the step
  double per_second = 0;  // tokens, samples or images, over all ranks
  std::string unit = "tok/s";
  std::optional<double> mfu = {};  // a fraction; nothing: no column
  int num_ranks = 1;
  double eta = 0;                        // remaining seconds of the run
  std::optional<Bytes> gpu_memory = {};  // peak; nothing: no column
  bool was_skipped = false;              // gradients overflowed, no update
};

// One line without the newline. Columns are fixed as long as num_steps, num_epochs and num_ranks do not change:
//
//   step  120/2000 | loss 3.4127 | norm 0.92 | lr 3.0e-04 | 212 ms | 77.1k tok/s | mfu 41.3% | 2 ranks | eta 1m02s
//
// With more than one epoch "epoch 1/3" follows the step; memory comes before the ranks. A skipped step shows "skipped"
// in place of the norm.
std::string step_line(const StepReport& report);

}  // namespace tandem
