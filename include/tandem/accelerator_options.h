#pragma once

#include <tandem/batch_plan.h>
#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <tandem/monitor_options.h>
#include <tandem/precision.h>
#include <tandem/run_options.h>
#include <tandem/training.h>

#include <filesystem>
#include <functional>
#include <string>

namespace tandem {

// All that a training program leaves to its command line.
struct AcceleratorOptions {
  RunOptions run = {};
  CommOptions comm = {};
  DdpOptions ddp = {};
  Precision precision = Precision::Auto;
  BatchOptions batch = {};
  TrainingOptions training = {};
  bool recompute = false;
  MonitorOptions monitor = {};
};

template <class Visitor>
void visit_fields(AcceleratorOptions& o, Visitor&& field) {
  field("", o.run, "where the run takes place");
  field("", o.batch, "size of a step");
  field("precision", o.precision, "what matrices are multiplied in");
  field("recompute", o.recompute, "keep fewer activations and compute them again, for less memory");
  field("", o.training, "the run");
  field("", o.ddp, "how ranks exchange gradients");
  field("", o.comm, "how ranks talk");
  field("", o.monitor, "what the run shows");
}

// What run_worker knows of a run.
struct RunPlace {
  std::filesystem::path folder = {};
  std::string settings = {};                // config_table(), shown at the start
  std::string go_on = {};                   // the command that goes on with this run
  std::function<void()> record_start = {};  // on rank 0, once it is known that the run can begin
};

}  // namespace tandem
