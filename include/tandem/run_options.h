#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tandem {

// How many ranks a program has, and on which devices.
struct RankOptions {
  std::optional<int> nproc = {};
  std::string device = "auto";
};

template <class Visitor>
void visit_fields(RankOptions& o, Visitor&& field) {
  field("nproc", o.nproc, "ranks on this host; none: one on each visible GPU, or one rank");
  field("device", o.device, "device of each rank: 0,1 or 0,0 (shared), cpu, all, auto");
}

void validate(const RankOptions& options);

// Where a run takes place, and where its files go.
struct RunOptions {
  RankOptions ranks = {};
  std::filesystem::path run_dir = "runs";
  std::string name = {};
};

template <class Visitor>
void visit_fields(RunOptions& o, Visitor&& field) {
  field("", o.ranks, "where the run takes place");
  field("run-dir", o.run_dir, "folder that holds the folders of runs");
  field("name", o.name, "folder of this run in it; empty: the program and the time");
}

void validate(const RunOptions& options);

}  // namespace tandem
