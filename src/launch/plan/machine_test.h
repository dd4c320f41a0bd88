#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/temp_test.h"
#include "launch/facts_test.h"
#include "launch/plan/plan.h"

namespace tandem {

inline Lookup variables_in(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

// A machine with four cores, the scripts of the guides, python3 and the given GPUs.
class SampleMachine {
 public:
  explicit SampleMachine(std::vector<std::string> gpus = {}) {
    for (const char* script : {"train.py", "version12.py", "src/train_ddp.py"}) folder_.add(script);
    for (const char* program : {"bin/python3", "bin/prog", "bin/tandem-prog", "local"}) folder_.add(program, "", 0700);
    variables["PATH"] = folder_.path() + "/bin";
    here.folder = folder_.path();
    here.gpus = std::move(gpus);
    here.cores = 4;
  }

  const std::string& path() const { return folder_.path(); }

  // The plan for a command line of flags and a program.
  LaunchPlan plan(const std::vector<std::string>& args, Dialect dialect = Dialect::Tandem) {
    LaunchOptions options = default_options(dialect);
    const LoadedConfig loaded = load_config(options, args, run_text(dialect));
    here.variable = variables_in(variables);
    return make_plan(options, dialect, loaded.rest, here);
  }

  // The Error of a command line, as by failure_text.
  std::string failure(const std::vector<std::string>& args, Dialect dialect = Dialect::Tandem) {
    return failure_text([&] { plan(args, dialect); });
  }

  std::map<std::string, std::string> variables;
  Surroundings here;

 private:
  TempFolder folder_;
};

// The value of a variable of one rank; "not set" when the plan does not set it.
inline std::string variable_of(const LaunchPlan& plan, int local_rank, const std::string& name) {
  for (const auto& [key, value] : rank_start(plan, local_rank, 4242, 0).variables) {
    if (key == name) return value;
  }
  return "not set";
}

}  // namespace tandem
