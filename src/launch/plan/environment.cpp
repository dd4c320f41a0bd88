#include "launch/plan/environment.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/fd.h"
#include "base/machine.h"
#include "base/text.h"
#include "launch/plan/accelerate.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownBytes = 60;  // of an invalid line

bool is_variable_name(std::string_view name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kInside = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return !name.empty() && kLetters.find(name.front()) != kLetters.npos && name.find_first_not_of(kInside) == name.npos;
}

// The text between the quotes, with \" and \\ unescaped inside double quotes; nothing if the quote is not closed, or if
// anything but a comment follows it.
std::optional<std::string> unquoted(std::string_view text) {
  const char quote = text.front();
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      const std::string_view after = trim(text.substr(i + 1));
      return after.empty() || after.starts_with('#') ? std::optional(value) : std::nullopt;
    }
    const bool escaped =
        quote == '"' && text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    value += text[escaped ? ++i : i];
  }
  return std::nullopt;
}

std::optional<std::string> value_of(std::string_view text) {
  text = trim(text);
  if (text.starts_with('"') || text.starts_with('\'')) return unquoted(text);
  return std::string(trim(text.substr(0, text.find(" #"))));
}

// Collects variables that the user has not set, in the environment or by flags.
class Defaults {
 public:
  Defaults(const Lookup& variable, const Variables& given) : variable_(variable), given_(given) {}

  std::optional<std::string> find(const std::string& name) const {
    const auto set = std::ranges::find(given_, name, &Variables::value_type::first);
    return set == given_.end() ? variable_(name) : set->second;
  }

  bool add(const std::string& name, std::string value) {
    if (find(name)) return false;
    set_variable(variables, name, std::move(value));
    return true;
  }

  Variables variables;

 private:
  const Lookup& variable_;
  const Variables& given_;
};

std::string module_path(const ProgramCommand& program, const Surroundings& here) {
  std::vector<std::string> folders = {here.folder.string()};
  if (!program.script_folder.empty()) folders.push_back(program.script_folder.string());
  for (std::string& folder : split(here.variable("PYTHONPATH").value_or(""), ':')) folders.push_back(std::move(folder));
  std::vector<std::string> path;
  for (const std::string& folder : folders) {
    if (!folder.empty() && std::ranges::count(path, folder) == 0) path.push_back(folder);
  }
  return join(path, ":");
}

void add_threads(Defaults& defaults, std::vector<std::string>& notes, const LaunchOptions& options, int local_ranks,
                 int cores) {
  if (const auto& threads = options.accelerate.num_cpu_threads_per_process) {
    set_variable(defaults.variables, "OMP_NUM_THREADS", str(*threads));
    return;
  }
  const int threads = std::max(1, cores / local_ranks);
  if (defaults.add("OMP_NUM_THREADS", str(threads)) && local_ranks > 1) {
    notes.push_back(str("OMP_NUM_THREADS=", threads, ": ", cores,
                        cores == 1 ? " usable core for " : " usable cores for ", local_ranks, " ranks"));
  }
}

void add_kaggle(Defaults& defaults, std::vector<std::string>& notes, const LaunchOptions& options,
                const Surroundings& here) {
  if (!options.environment.kaggle.value.value_or(here.kaggle)) return;
  const bool is_free = !options.placement.nproc_per_node.given() && !options.placement.device;
  if (here.gpus.size() < 2 && is_free) notes.push_back(kaggle_accelerator_note(here.gpus.size()));
  if (here.gpus.empty()) return;
  std::vector<std::string> set;
  for (const char* name : {"NCCL_P2P_DISABLE", "NCCL_IB_DISABLE"}) {
    if (defaults.add(name, "1")) set.push_back(str(name, "=1"));
  }
  if (!set.empty()) notes.push_back(str(join(set, " and "), ": Kaggle's GPUs have no direct link"));
}

// The variables that define a rank, and those by which tandem finds its processes, cannot be set by the user.
void check_free(const std::string& name, const std::string& where) {
  const Variables own = worker_variables({});
  const bool is_own = std::ranges::find(own, name, &Variables::value_type::first) != own.end();
  if (!is_own && !name.starts_with("TANDEM_")) return;
  fail(ErrorKind::Usage, str(where, ": ", name, " is set by tandem for each rank"),
       "leave it out; see `tandem run --help` for flags that set ranks, addresses and ports");
}

void add_exports(Variables& variables, std::vector<std::string>& notes, const EnvironmentOptions& options,
                 const Lookup& variable) {
  for (const std::string& item : options.set.items) {
    const std::string name = item.substr(0, item.find('='));
    if (!is_variable_name(name)) {
      fail(ErrorKind::Usage, str("-x: '", name.substr(0, kShownBytes), "' is not a variable name"),
           "try -x NAME=value, or -x NAME to pass on your value");
    }
    check_free(name, "-x");
    if (name.size() < item.size()) {
      set_variable(variables, name, item.substr(name.size() + 1));
    } else if (const auto own = variable(name)) {
      set_variable(variables, name, *own);
    } else {
      notes.push_back(str("-x ", name, ": not set in the environment, so not passed on"));
    }
  }
}

}  // namespace

void set_variable(Variables& variables, const std::string& name, std::string value) {
  const auto found = std::ranges::find(variables, name, &Variables::value_type::first);
  if (found != variables.end()) {
    found->second = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

void set_variables(Variables& variables, const Variables& changes) {
  for (const auto& [name, value] : changes) set_variable(variables, name, value);
}

Variables read_env_file(const fs::path& path) {
  Variables variables;
  std::size_t number = 0;
  for (const std::string& text : split(read_file(path, ErrorKind::Config), '\n')) {
    ++number;
    std::string_view line = trim(text);
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("export ")) line = trim(line.substr(7));
    const std::size_t equals = line.find('=');
    const std::string_view name = trim(line.substr(0, equals));
    const auto value = equals == line.npos ? std::nullopt : value_of(line.substr(equals + 1));
    if (!value || !is_variable_name(name)) {
      fail(ErrorKind::Config, str(path, ':', number, ": '", line.substr(0, kShownBytes), "' is not NAME=value"),
           "write one NAME=value per line, with closed quotes");
    }
    check_free(std::string(name), str(path, ':', number));
    set_variable(variables, std::string(name), *value);
  }
  return variables;
}

RankVariables rank_variables(const LaunchOptions& options, Dialect dialect, const ProgramCommand& program,
                             const World& world, const std::vector<std::string>& devices, const Surroundings& here) {
  RankVariables result;
  Variables given;
  if (options.environment.env_file) given = read_env_file(*options.environment.env_file);
  add_exports(given, result.notes, options.environment, here.variable);
  Defaults defaults(here.variable, given);
  add_threads(defaults, result.notes, options, world.local_size, here.cores);
  set_variables(defaults.variables, openmp_variables([&](const std::string& name) { return defaults.find(name); }));
  defaults.add("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  defaults.add("PYTHONUNBUFFERED", "1");
  defaults.add("PYTHONFAULTHANDLER", "1");
  add_kaggle(defaults, result.notes, options, here);
  // Without it Accelerate on CPUs starts a process group and then trains a model per rank (DistributedType.NO).
  const bool on_cpu = std::ranges::all_of(devices, [](const std::string& device) { return device == "cpu"; });
  if (on_cpu && world.size > 1) defaults.add("ACCELERATE_USE_CPU", "True");
  result.variables = std::move(defaults.variables);
  set_variable(result.variables, "PYTHONPATH", module_path(program, here));
  if (dialect == Dialect::Accelerate || options.accelerate != AccelerateOptions{}) {
    set_variables(result.variables, accelerate_variables(options.accelerate, world.size == 1));
  }
  set_variables(result.variables, given);
  return result;
}

}  // namespace tandem
