#pragma once

#include <optional>
#include <string>

namespace tandem {

struct ProgressOptions {
  bool progress = true;
};

template <class Visitor>
void visit_fields(ProgressOptions& o, Visitor&& field) {
  field("progress", o.progress, "show the progress line");
}

struct PeakOptions {
  std::optional<double> peak_tflops = {};
};

template <class Visitor>
void visit_fields(PeakOptions& o, Visitor&& field) {
  field("peak-tflops", o.peak_tflops, "peak TFLOP/s of one device, for mfu; default: from a table of devices");
}

void validate(const PeakOptions& options);

// What a run prints.
struct MonitorOptions {
  ProgressOptions progress = {};
  PeakOptions peak = {};
  bool json = false;
};

template <class Visitor>
void visit_fields(MonitorOptions& o, Visitor&& field) {
  field("", o.progress, "output");
  field("", o.peak, "output");
  field("json", o.json,
        "print the result as one JSON object on the last line of standard output; everything else goes to standard "
        "error");
}

// The unit of work of a run.
struct Workload {
  std::string unit = "samples";  // what a LossSum counts: samples, tokens, images
  double flops = 0;              // of the model per unit, forward and backward; 0: unknown, no mfu

  std::string rate() const;  // "samples/s", "tok/s", "img/s"
};

}  // namespace tandem
