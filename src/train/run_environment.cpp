#include "train/run_environment.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/devices.h"
#include "base/machine.h"
#include "base/text.h"
#include "build_facts.h"

namespace tandem {
namespace {

bool is_telling(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"CUDA_VISIBLE_DEVICES", "GOMP_SPINCOUNT", "OMP_NUM_THREADS",
                                                      "OMP_WAIT_POLICY"};
  constexpr std::array<std::string_view, 4> kPrefixes = {"TANDEM_", "NCCL_", "MKL_", "TORCH_"};
  if (name == "TANDEM_SECRET") return false;
  return std::ranges::count(kNames, name) > 0 ||
         std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Json::Array gpu_names() {
  Json::Array names;
  for (const Gpu& gpu : list_gpus()) names.emplace_back(gpu.name.empty() ? str("GPU ", gpu.number) : gpu.name);
  return names;
}

}  // namespace

Json::Object telling_variables(std::vector<std::string> variables) {
  std::ranges::sort(variables);
  Json::Object telling;
  for (const std::string& variable : variables) {
    const std::string name = variable.substr(0, variable.find('='));
    if (is_telling(name)) telling.emplace_back(name, variable.substr(std::min(name.size() + 1, variable.size())));
  }
  return telling;
}

Json run_environment(const WorkerEnv& env, const std::vector<std::string>& devices) {
  utsname system{};
  ::uname(&system);
  std::error_code gone;
  return Json::Object{{"tandem", std::string(kVersion)},
                      {"torch", std::string(kTorch)},
                      {"compiler", std::string(kCompiler)},
                      {"host", system.nodename},
                      {"kernel", str(system.sysname, ' ', system.release)},
                      {"folder", std::filesystem::current_path(gone).string()},
                      {"cpu", cpu_name()},
                      {"cores", usable_cores()},
                      {"memory_bytes", static_cast<std::int64_t>(usable_memory().count)},
                      {"gpus", gpu_names()},
                      {"world_size", env.world.size},
                      {"hosts", env.world.num_nodes},
                      {"devices", Json::Array(devices.begin(), devices.end())},
                      {"variables", telling_variables(environment_with({}))}};
}

}  // namespace tandem
