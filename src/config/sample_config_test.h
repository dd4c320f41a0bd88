#pragma once

#include <tandem/config.h>
#include <tandem/error.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// A configuration with a field of every type, for the tests of this module.

enum class SamplePrecision { Fp32, Bf16, Fp16 };

inline std::vector<std::pair<std::string, SamplePrecision>> enum_names(SamplePrecision) {
  return {{"fp32", SamplePrecision::Fp32}, {"bf16", SamplePrecision::Bf16}, {"fp16", SamplePrecision::Fp16}};
}

struct SampleOptimizer {
  double lr = 3e-4;
  std::vector<double> betas = {0.9, 0.999};
  bool nesterov = false;

  friend bool operator==(const SampleOptimizer&, const SampleOptimizer&) = default;
};

template <class Visitor>
void visit_fields(SampleOptimizer& o, Visitor&& field) {
  field("lr", o.lr, "peak learning rate");
  field("betas", o.betas, "decay rates of the moments");
  field("nesterov", o.nesterov, "use Nesterov momentum");
}

inline void validate(const SampleOptimizer& o) {
  if (o.lr < 0) fail(ErrorKind::Config, "optimizer.lr is negative", "try 3e-4");
}

struct SampleConfig {
  std::int64_t batch_size = 8;
  std::uint8_t level = 3;
  float dropout = 0.1F;
  bool shuffle = true;
  std::string name = "run";
  std::filesystem::path data = "data/train.csv";
  std::chrono::seconds stop_at{41400};
  Bytes memory{18'000'000'000};
  SamplePrecision precision = SamplePrecision::Fp32;
  std::vector<std::string> tags;
  std::optional<std::int64_t> max_steps;
  std::optional<std::string> note;
  SampleOptimizer optimizer;

  friend bool operator==(const SampleConfig&, const SampleConfig&) = default;
};

template <class Visitor>
void visit_fields(SampleConfig& o, Visitor&& field) {
  field("batch-size,b", o.batch_size, "samples in a micro-batch");
  field("level", o.level, "compression level");
  field("dropout", o.dropout, "dropout probability");
  field("shuffle", o.shuffle, "shuffle in every epoch");
  field("name", o.name, "name of the run");
  field("data", o.data, "training data");
  field("stop-at", o.stop_at, "stop after this time");
  field("memory", o.memory, "memory limit");
  field("precision", o.precision, "precision of the model");
  field("tags", o.tags, "tags of the run");
  field("max-steps", o.max_steps, "stop after this many steps");
  field("note", o.note, "a remark");
  field("optimizer", o.optimizer, "");
}

inline const ProgramText kSampleProgram{.name = "sample", .arguments = "", .about = "A sample.", .examples = {}};

}  // namespace tandem
