#pragma once

#include <tandem/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// What one step did, as plain numbers.
struct StepReport {
  std::int64_t step = 0;  // done so far, this one among them
  std::int64_t num_steps = 0;
  std::int64_t epoch = 0;  // from 1
  std::int64_t num_epochs = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> terms = {};  // of the loss; shown if there are several
  double norm = 0;
  double lr = 0;
  double seconds = 0;     // that the step took
  double per_second = 0;  // tokens, samples or images, over all ranks
  std::string unit = "tok/s";
  std::optional<double> mfu = {};  // a fraction; nothing: the column is left out
  int num_ranks = 1;
  double eta = 0;                        // seconds to the end of the run
  std::optional<Bytes> gpu_memory = {};  // at its highest; nothing: the column is left out
  bool was_skipped = false;              // its gradient overflowed, the model stayed as it was
};

// One line without its end. Columns keep their places for as long as num_steps, num_epochs and num_ranks stay:
//
//   step  120/2000 | loss 3.4127 | norm 0.92 | lr 3.0e-04 | 212 ms | 77.1k tok/s | mfu 41.3% | 2 ranks | eta 1m02s
//
// With more than one epoch "epoch 1/3" follows the step; memory goes before the ranks. A skipped step says so in place
// of its norm, which means nothing then.
std::string step_line(const StepReport& report);

}  // namespace tandem
