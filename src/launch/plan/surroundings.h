#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/worker_env.h"
#include "launch/plan/outer.h"

namespace tandem {

// The machine and environment of the launcher. A value, so that tests can plan for any machine.
struct Surroundings {
  Lookup variable;
  std::filesystem::path folder;   // current working directory
  std::vector<std::string> gpus;  // ids of the visible GPUs
  int cores = 1;                  // usable CPU cores
  bool kaggle = false;
  OuterJob outer;
};

}  // namespace tandem
