#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct GivesWay;  // <tandem/config.h>

// The number of ranks of a program, and their devices.
struct RankOptions {
  std::optional<int> nproc = {};
  std::string device = "auto";
  bool detach = false;
};

template <class Visitor>
void visit_fields(RankOptions& o, Visitor&& field) {
  field("nproc", o.nproc, "ranks on this host; default: one per visible GPU, or one rank");
  field("device", o.device, "device of each rank: 0,1 or 0,0 (shared), cpu, all, auto");
  field("detach", o.detach, "run in the background in a new session; print the job's name");
}

void validate(const RankOptions& options);

// The ranks of a run and its folder.
struct RunOptions {
  RankOptions ranks = {};
  std::filesystem::path run_dir = "runs";
  std::string name = {};
};

template <class Visitor>
void visit_fields(RunOptions& o, Visitor&& field) {
  field("", o.ranks, "ranks");
  field("run-dir", o.run_dir, "parent folder of run folders");
  field("name", o.name, "name of the run folder; default: the program and the time");
}

void validate(const RunOptions& options);

// The size of a step: batch size x accumulation x ranks, unless a global batch or shards are given.
struct BatchOptions {
  std::int64_t batch_size = 8;
  std::optional<std::int64_t> accumulate = {};
  std::optional<std::int64_t> global_batch = {};
  std::optional<std::int64_t> shards = {};
};

template <class Visitor>
void visit_fields(BatchOptions& o, Visitor&& field) {
  field("batch-size", o.batch_size, "samples per micro-batch");
  field("accumulate", o.accumulate, "gradient accumulation: micro-batches per step on each rank");
  field("global-batch", o.global_batch, "samples per step over all ranks; determines the accumulation");
  field("shards", o.shards, "exact mode: micro-batches per step over all ranks; the same bits on 1, 2 or 4 ranks");
}

void validate(const BatchOptions& options);
std::vector<GivesWay> gives_way(const BatchOptions& options);

// The micro-batches of one step.
struct BatchPlan {
  std::int64_t batch_size = 1;
  std::int64_t accumulate = 1;  // micro-batches on each rank
  std::int64_t num_ranks = 1;
  bool is_exact = false;

  std::int64_t batches_per_step() const { return accumulate * num_ranks; }
  std::int64_t global_batch() const { return batch_size * batches_per_step(); }

  // "256 samples a step = 16 a micro-batch x 8 micro-batches x 2 ranks"
  std::string text() const;
};

// Sizes that do not divide evenly are an Error that names the nearest valid ones.
BatchPlan plan_batch(const BatchOptions& options, int num_ranks);

// The options with the nearest global batch that these ranks can have, for one that was proposed and not given.
BatchOptions with_fitting_batch(BatchOptions options, int num_ranks);

// The type of matrix multiplications. Weights, their gradients and the optimizer state stay in fp32.
enum class Precision { Auto, Fp32, Bf16, Fp16 };

inline std::vector<std::pair<std::string, Precision>> enum_names(Precision) {
  return {{"auto", Precision::Auto}, {"fp32", Precision::Fp32}, {"bf16", Precision::Bf16}, {"fp16", Precision::Fp16}};
}

std::string precision_name(Precision precision);  // "bf16"

// What the choice depends on. cuda_major 0: the CPU.
struct DeviceFacts {
  int cuda_major = 0;
  int cuda_minor = 0;
  bool cpu_has_bf16 = false;  // AVX512-BF16; every CPU with AMX has it
};

struct ChosenPrecision {
  Precision precision = Precision::Fp32;  // never Auto
  std::string why;                        // "a CPU with AVX512-BF16 accelerates bf16"
};

// Auto: bf16 if the hardware accelerates it (GPUs from Ampere on, CPUs with AVX512-BF16), fp16 with loss scaling on
// GPUs whose tensor cores do not support bf16 (V100, T4), otherwise fp32. A requested precision is kept; `why` says if
// it is slow on this device.
ChosenPrecision choose_precision(Precision wanted, const DeviceFacts& device);

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
