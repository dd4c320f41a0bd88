#pragma once

#include <ATen/Parallel.h>
#include <tandem/config.h>
#include <tandem/run_worker.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/json.h"

namespace tandem::bench {

// The `main` of a benchmark: parses flags, runs, and prints one JSON object on rank 0. Each rank uses one thread.
template <HasFields Options, class Measure>
int run_bench(const std::vector<std::string>& args, const std::string& name, const std::string& about,
              Measure measure) {
  return run_worker([&](const World& world) {
    Options options;
    const auto loaded = load_config(options, args, {.name = name, .arguments = "", .about = about, .examples = {}});
    at::set_num_threads(1);
    const std::string text = loaded.text ? *loaded.text : json_text(measure(options, world));
    if (world.is_main()) write_all(STDOUT_FILENO, text + "\n");
  });
}

}  // namespace tandem::bench
