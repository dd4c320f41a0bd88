#pragma once

#include <tandem/progress.h>
#include <tandem/throughput.h>

#include <string>

namespace tandem {

// How a run shows itself.
struct MonitorOptions {
  ProgressOptions progress = {};
  PeakOptions peak = {};
  bool json = false;
};

template <class Visitor>
void visit_fields(MonitorOptions& o, Visitor&& field) {
  field("", o.progress, "what the run shows");
  field("", o.peak, "what the run shows");
  field("json", o.json,
        "the result as one JSON object, the last line of standard output; all else goes to standard error");
}

// What the steps of a run work on.
struct Workload {
  std::string unit = "samples";  // what a LossSum counts: samples, tokens, images
  double flops = 0;              // of the model for one of them, forward and backward; 0: not known, so there is no mfu

  std::string rate() const;  // "samples/s", "tok/s", "img/s"
};

}  // namespace tandem
