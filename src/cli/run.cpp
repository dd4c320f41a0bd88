#include <tandem/error.h>
#include <unistd.h>

#include <filesystem>

#include "base/devices.h"
#include "base/fd.h"
#include "base/machine.h"
#include "base/program.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "cli/command.h"
#include "launch/jobs/detach.h"
#include "launch/launch.h"
#include "launch/plan/outer.h"
#include "launch/plan/plan.h"
#include "launch/plan/program.h"

namespace tandem {
namespace {

std::filesystem::path current_folder() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::current_path(error);
  if (error) {
    fail(ErrorKind::Launch, str("tandem run: the current folder does not exist any more (", error.message(), ')'),
         "`cd` to an existing folder");
  }
  return folder;
}

Surroundings read_surroundings() {
  return {.variable = environment_variable,
          .folder = current_folder(),
          .gpus = visible_gpus(list_gpus(), environment_variable_or_empty("CUDA_VISIBLE_DEVICES")),
          .cores = usable_cores(),
          .kaggle = is_kaggle(environment_variable),
          .outer = read_outer_job(environment_variable)};
}

int start_plan(const LaunchOptions& options, Dialect dialect, const LaunchPlan& plan) {
  if (options.streams.dry_run) {
    return print(options.streams.json ? str(json_text(plan_json(plan)), '\n') : plan_text(plan));
  }
  if (plan.joins) {
    const RankStart rank = rank_start(plan, 0, plan.master_port, 0);
    become_program(rank.command, environment_with(rank.variables));
  }
  if (!options.streams.detach) return launch(options, dialect, plan);
  return detach([&](const OnStart& on_start) { return launch(options, dialect, plan, on_start); },
                [](const std::string& name) {
                  print(str(name, '\n'));
                  write_all(STDERR_FILENO, str("tandem: running in the background: `tandem logs -f ", name,
                                               "`, `tandem stack ", name, "`, `tandem stop ", name, "`\n"));
                });
}

}  // namespace

int run_program(Dialect dialect, std::span<const std::string> args, const std::optional<std::string>& python) {
  LaunchOptions options = default_options(dialect);
  const ProgramText program = run_text(dialect);
  LoadedConfig loaded = load_config(options, args, program);
  if (loaded.text) return print(*loaded.text);
  if (loaded.rest.empty()) {
    fail(ErrorKind::Usage, str(program.name, ": no program was given"), str("try `", program.examples.front(), '`'));
  }
  if (dialect == Dialect::Tandem) {
    if (const auto inner = unwrap_launcher(loaded.rest)) {
      std::vector<std::string> words(args.begin(), args.end() - static_cast<std::ptrdiff_t>(loaded.rest.size()));
      words.insert(words.end(), inner->args.begin(), inner->args.end());
      return run_program(inner->dialect, words, inner->python);
    }
  }
  if (python && !options.program.python) options.program.python = python;
  return start_plan(options, dialect, make_plan(options, dialect, loaded.rest, read_surroundings()));
}

Command run_command() {
  return make_command<LaunchOptions>(
      "run", "start N ranks of a program and wait for them",
      [](std::span<const std::string> args) { return run_program(Dialect::Tandem, args); });
}

Command launch_command() {
  return make_command<LaunchOptions>(
      "launch", "the same with the flags and defaults of torch.distributed.launch",
      [](std::span<const std::string> args) { return run_program(Dialect::Launch, args); });
}

}  // namespace tandem
