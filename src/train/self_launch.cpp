#include "train/self_launch.h"

#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>

#include "base/check_range.h"
#include "base/control_page.h"
#include "base/devices.h"
#include "base/machine.h"
#include "base/program.h"
#include "base/text.h"
#include "build_facts.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLauncher = "tandem";
constexpr const char* kAuto = "auto";

// Without CUDA in torch, GPUs do not count, and to ask for one is an Error.
std::vector<std::string> usable_gpus(const std::string& device) {
  std::vector<std::string> visible = visible_gpus_here();
  if (kTorchHasCuda) return visible;
  if (!visible.empty() && device != kAuto && device != "cpu") {
    const UnusableGpus why = unusable_gpus(visible.size(), kTorchHasCuda);
    fail(ErrorKind::Device, str("--device ", device, ": ", why.message), why.hint);
  }
  return {};
}

// Whether there are torchrun's variables, which `tandem run` reads too: PET_MAX_RESTARTS=3.
bool is_launcher_told() {
  const std::vector<std::string> variables = environment_with({});
  return std::ranges::any_of(variables, [](const std::string& variable) { return variable.starts_with("PET_"); });
}

// The folders above a program may be writable by anyone, such as /tmp.
bool is_trusted(const fs::path& path, const fs::path& program) {
  struct stat file {};
  struct stat own {};
  if (::stat(path.c_str(), &file) != 0 || ::stat(program.c_str(), &own) != 0) return false;
  return file.st_uid == 0 || file.st_uid == ::geteuid() || file.st_uid == own.st_uid;
}

std::vector<fs::path> places_near(const fs::path& program) {
  std::vector<fs::path> places = {program.parent_path() / kLauncher};
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    const fs::path place = folder.parent_path() / "bin" / kLauncher;
    if (place != places.front()) places.push_back(place);
  }
  return places;
}

// The launcher's flags, then this program again with its own.
std::vector<std::string> launch_command(const fs::path& launcher, const fs::path& program, const RankOptions& options,
                                        const std::vector<std::string>& command) {
  std::vector<std::string> words = {launcher, "run"};
  if (options.nproc) words.insert(words.end(), {"--nproc", str(*options.nproc)});
  const bool is_auto = options.device == kAuto;
  if (options.detach) words.emplace_back("--detach");
  if (!is_auto || !kTorchHasCuda) words.insert(words.end(), {"--device", is_auto ? "cpu" : options.device});
  words.push_back(program);
  words.insert(words.end(), command.begin() + 1, command.end());
  return words;
}

// The names of one device: its number among the visible GPUs, and what CUDA_VISIBLE_DEVICES calls it.
std::vector<std::string> names_of(const std::string& device, const std::vector<std::string>& visible) {
  constexpr std::string_view kCuda = "cuda:";
  if (!device.starts_with(kCuda)) return {device};
  const std::string number = device.substr(kCuda.size());
  std::vector<std::string> names = {device, number, "all", "cuda"};
  const auto place = to_unsigned(number);
  if (place && *place < visible.size()) names.push_back(visible[*place]);
  return names;
}

bool is_device(const std::string& wanted, const std::string& device, const std::vector<std::string>& visible) {
  return std::ranges::count(names_of(device, visible), trim(wanted)) > 0;
}

// One word applies to all ranks; a list has one entry per rank.
bool are_devices(const std::string& wanted, const WorkerEnv& env, const std::vector<std::string>& visible) {
  std::vector<std::string> entries = split(wanted, ',');
  if (wanted == "cpu" || wanted == "all" || wanted == "cuda") entries.assign(env.devices.size(), wanted);
  return std::ranges::equal(entries, env.devices, [&](const std::string& entry, const std::string& device) {
    return is_device(entry, device, visible);
  });
}

}  // namespace

void validate(const RankOptions& o) { check_range("nproc", o.nproc.value_or(1), 1, ControlPage::kMaxRanks); }

void launch_if_needed(const RankOptions& options, const std::vector<std::string>& command, const WorkerEnv& env,
                      const std::function<Variables()>& prepare) {
  const std::vector<std::string> gpus = usable_gpus(options.device);
  if (env.is_launched) return check_launched(options, env, gpus);
  if (!needs_launcher(options, gpus)) return;
  const fs::path program = own_program();
  const fs::path launcher = find_launcher(program, path_folders());  // first: `prepare` creates files
  const Variables variables = prepare();
  become_program(launch_command(launcher, program, options, command), environment_with(variables));
}

std::string device_note(const RankOptions& options, const WorkerEnv& env, bool is_on_cpu) {
  const bool is_chosen = options.device != kAuto || !env.devices.empty();
  if (is_chosen || env.world.local_rank != 0) return "";
  const std::size_t num_gpus = visible_gpus_here().size();
  if (is_on_cpu && num_gpus > 0) {
    const UnusableGpus why = unusable_gpus(num_gpus, kTorchHasCuda);
    return str("note: running on the CPU: ", why.message, "\nhint: ", why.hint, '\n');
  }
  if (num_gpus >= 2 || options.nproc || !is_kaggle(environment_variable)) return "";
  return str("note: ", kaggle_accelerator_note(num_gpus), '\n');
}

bool needs_launcher(const RankOptions& options, const std::vector<std::string>& visible_gpus) {
  const DevicePlan plan = plan_devices(options.device, options.nproc, true, visible_gpus);
  return plan.num_ranks > 1 || options.detach || options.device != kAuto || is_launcher_told();
}

fs::path find_launcher(const fs::path& program, const std::vector<fs::path>& path_folders) {
  const std::vector<fs::path> near = places_near(program);
  for (const fs::path& place : near) {
    if (is_program(place) && is_trusted(place, program)) return place;
  }
  for (const fs::path& folder : path_folders) {
    if (is_program(folder / kLauncher)) return folder / kLauncher;
  }
  std::vector<std::string> looked(near.begin(), near.end());
  fail(ErrorKind::Launch,
       str("launcher not found: several ranks need ", kLauncher, ", which is neither ", join(looked, " nor "),
           " nor on PATH"),
       str("add the folder of `tandem` to PATH, or start the program with it: `tandem run -n 2 ", program, " ...`"));
}

void check_launched(const RankOptions& options, const WorkerEnv& env, const std::vector<std::string>& visible_gpus) {
  if (!env.run_folder.empty()) return;  // launched by this program itself, with these options
  constexpr const char* kHint = "leave out the flag, or start the program without a launcher";
  const World& world = env.world;
  if (options.nproc.value_or(world.local_size) != world.local_size) {
    fail(ErrorKind::Usage,
         str("--nproc ", *options.nproc, ", but the launcher started ", world.local_size, " ranks on this host"),
         kHint);
  }
  const bool is_known = env.devices.size() == static_cast<std::size_t>(world.local_size);
  if (options.device == kAuto || !is_known || are_devices(options.device, env, visible_gpus)) return;
  fail(ErrorKind::Usage,
       str("--device ", options.device, ", but the launcher gave the ranks ", join(env.devices, ", ")), kHint);
}

}  // namespace tandem
