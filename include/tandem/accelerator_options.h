#pragma once

#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <tandem/detail/field.h>
#include <tandem/run_options.h>
#include <tandem/training.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// The settings of a training program that are flags on its command line.
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
  field("", o.run, "ranks and run folder");
  field("", o.batch, "size of a step");
  field("precision", o.precision, "precision of matrix products");
  field("recompute", o.recompute,
        "activation checkpointing: recompute activations in the backward pass to save memory");
  field("", o.training, "the run");
  field("", o.ddp, "gradient reduction");
  field("", o.comm, "communication");
  field("", o.monitor, "output");
}

// These are compiled in the library, and not once more in every program.
extern template void detail::collect_fields(AcceleratorOptions& config, std::string_view prefix,
                                            std::string_view section, std::vector<Field>& fields);
extern template void validate_fields(AcceleratorOptions& config);

// What run_worker knows about a run.
struct RunPlace {
  std::filesystem::path folder = {};
  std::string settings = {};                // config_table(), shown at the start
  std::string resume_command = {};          // a shell command
  std::function<void()> record_start = {};  // called on rank 0 when the run begins
  std::vector<std::string> proposed = {};   // names of settings that a preset chose: they give way to what is given

  bool proposes(std::string_view setting) const { return std::ranges::count(proposed, setting) > 0; }
};

}  // namespace tandem
