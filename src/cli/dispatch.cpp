#include "cli/dispatch.h"

#include <tandem/error.h>

#include <algorithm>
#include <set>

#include "base/machine.h"
#include "base/program.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "cli/command.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "tandem-";

std::vector<fs::path> program_folders() {
  std::vector<fs::path> folders = path_folders();
  folders.insert(folders.begin(), own_program().parent_path());
  return folders;
}

[[noreturn]] void fail_unknown(const std::string& name, std::span<const Command> commands) {
  std::vector<std::string> known = list_programs();
  for (const Command& command : commands) known.push_back(command.name);
  const auto meant = nearest(name, known);
  fail(ErrorKind::Usage, str("tandem: there is no command '", name, "'"),
       meant ? str("did you mean `tandem ", *meant, "`?") : "`tandem --help` lists the commands");
}

}  // namespace

int dispatch(std::span<const std::string> args) {
  std::string name = args.empty() ? "help" : args.front();
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version") name = "version";
  const auto rest = args.subspan(std::min<std::size_t>(1, args.size()));

  const std::vector<Command> commands = all_commands();
  const auto command = std::ranges::find(commands, name, &Command::name);
  if (command != commands.end()) return command->run(rest);
  if (const auto program = find_program(name)) replace_process(*program, rest);
  fail_unknown(name, commands);
}

std::optional<fs::path> find_on_path(std::string_view name) {
  for (const fs::path& folder : path_folders()) {
    std::error_code missing;
    const fs::path path = folder / name;
    if (is_program(path) && !fs::equivalent(path, own_program(), missing)) return path;
  }
  return std::nullopt;
}

void replace_process(const fs::path& program, std::span<const std::string> args) {
  std::vector<std::string> command = {program};
  command.insert(command.end(), args.begin(), args.end());
  become_program(command, environment_with(openmp_variables(environment_variable)));
}

std::optional<fs::path> find_program(std::string_view name) {
  if (name.empty() || name.find('/') != name.npos) return std::nullopt;
  for (const fs::path& folder : program_folders()) {
    if (const fs::path path = folder / str(kPrefix, name); is_program(path)) return path;
  }
  return std::nullopt;
}

std::vector<std::string> list_programs() {
  std::set<std::string> names;
  for (const fs::path& folder : program_folders()) {
    std::error_code unreadable;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(kPrefix) && is_program(entry.path())) names.insert(name.substr(kPrefix.size()));
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace tandem
