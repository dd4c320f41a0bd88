#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tandem {

// The number of ranks of a program, and their devices.
struct RankOptions {
  std::optional<int> nproc = {};
  std::string device = "auto";
};

template <class Visitor>
void visit_fields(RankOptions& o, Visitor&& field) {
  field("nproc", o.nproc, "ranks on this host; default: one per visible GPU, or one rank");
  field("device", o.device, "device of each rank: 0,1 or 0,0 (shared), cpu, all, auto");
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

}  // namespace tandem
