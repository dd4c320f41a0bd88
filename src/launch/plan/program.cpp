#include "launch/plan/program.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/program.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool is_on_path(const std::string& name, const Lookup& variable) {
  const std::vector<std::string> folders = split(variable("PATH").value_or("/bin:/usr/bin"), ':');
  return std::ranges::any_of(folders, [&](const std::string& folder) { return is_program(fs::path(folder) / name); });
}

bool is_python(const std::string& program) {
  const std::string name = fs::path(program).filename();
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

std::string interpreter(const ProgramOptions& options, const Lookup& variable) {
  if (options.python) return *options.python;
  if (const auto named = variable("PYTHON_EXEC")) return *named;
  for (const char* name : {"python3", "python"}) {
    if (is_on_path(name, variable)) return name;
  }
  fail(ErrorKind::Launch, "tandem: neither python3 nor python is on PATH",
       "set --python FILE, or --no-python if the program is not a Python script");
}

// torchrun takes any name for a script. Of ours, such as tandem-segment, it would say that there is no such file.
bool is_our_program(const std::string& program, const Surroundings& here) {
  std::error_code ignored;
  return program.starts_with("tandem-") && program.find('/') == std::string::npos && !program.ends_with(".py") &&
         !fs::exists(here.folder / program, ignored) && is_on_path(program, here.variable);
}

void check_script(const std::string& script, const Surroundings& here) {
  std::error_code ignored;
  if (fs::exists(here.folder / script, ignored)) return;
  fail(ErrorKind::Launch, str("cannot start ", script, ": not found in ", here.folder),
       "check the name and the folder; -m runs a module, --no-python a program on PATH");
}

void check_program(const std::string& program, const Surroundings& here) {
  const bool has_slash = program.find('/') != std::string::npos;
  const fs::path file = here.folder / program;
  std::error_code ignored;
  if (has_slash ? is_program(file) : is_on_path(program, here.variable)) return;
  if (program.empty()) fail(ErrorKind::Usage, "the name of the program is empty", "check quotes and shell variables");
  if (has_slash && fs::is_directory(file, ignored)) {
    fail(ErrorKind::Launch, str("cannot start ", program, ": it is a folder"), "name a program in it, or a .py file");
  }
  if (has_slash && fs::is_regular_file(file, ignored)) {
    fail(ErrorKind::Launch, str("cannot start ", program, ": it is not executable"),
         str("try `chmod +x ", program, "`, or name its interpreter, such as bash"));
  }
  fail(ErrorKind::Launch, str("cannot start ", program, ": not found", has_slash ? "" : " on PATH"),
       str("check the name; a program in the current folder is ./", has_slash ? "NAME" : program));
}

// The name of a run: "train" for "src/train.py" and for the module "package.train".
std::string short_name(const std::string& program, bool module) {
  std::string name = module ? program.substr(program.rfind('.') + 1) : fs::path(program).stem().string();
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '_' && c != '-'; }, '-');
  return name.empty() ? "run" : name;
}

// `python train.py` is named after the script, too.
const std::string& known_word(const std::vector<std::string>& words) {
  const auto script = std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
  return is_python(words.front()) && script != words.end() ? *script : words.front();
}

std::optional<Dialect> launcher_module(const std::string& module) {
  if (module == "torch.distributed.run") return Dialect::Torchrun;
  if (module == "torch.distributed.launch") return Dialect::Launch;
  if (module == "accelerate.commands.launch") return Dialect::Accelerate;
  return std::nullopt;
}

std::vector<std::string> rest_of(const std::vector<std::string>& words, std::size_t from) {
  return {words.begin() + static_cast<std::ptrdiff_t>(std::min(from, words.size())), words.end()};
}

}  // namespace

ProgramCommand program_command(const ProgramOptions& options, Dialect dialect, const std::vector<std::string>& words,
                               const Surroundings& here) {
  if (words.empty()) {
    const ProgramText text = run_text(dialect);
    fail(ErrorKind::Usage,
         str(text.name, options.module ? ": -m needs the name of a module" : ": no program was given"),
         str("try `", text.examples.front(), '`'));
  }
  const std::string& program = words.front();
  const bool module = options.module && !options.run_path;
  const bool is_script = dialect == Dialect::Tandem ? program.ends_with(".py") : !is_our_program(program, here);
  const bool python = module || options.run_path || (!options.no_python && is_script);
  ProgramCommand command;
  command.name = short_name(known_word(words), module);
  if (!python) {
    check_program(program, here);
    command.words = words;
    command.first_argument = 1;
    return command;
  }
  if (!module) {
    check_script(program, here);
    command.script_folder = fs::weakly_canonical(here.folder / program).parent_path();
  }
  command.words = {interpreter(options, here.variable), "-u"};
  if (module) command.words.emplace_back("-m");
  command.first_argument = command.words.size() + 1;
  command.words.insert(command.words.end(), words.begin(), words.end());
  return command;
}

std::optional<Unwrapped> unwrap_launcher(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  const std::string name = fs::path(words.front()).filename();
  if (name == "torchrun") return Unwrapped{Dialect::Torchrun, rest_of(words, 1), std::nullopt};
  if (name == "accelerate-launch") return Unwrapped{Dialect::Accelerate, rest_of(words, 1), std::nullopt};
  if (name == "accelerate" && words.size() > 1 && words[1] == "launch") {
    return Unwrapped{Dialect::Accelerate, rest_of(words, 2), std::nullopt};
  }
  if (!is_python(name)) return std::nullopt;
  const std::size_t flag = words.size() > 1 && words[1] == "-u" ? 2 : 1;
  if (words.size() < flag + 2 || words[flag] != "-m") return std::nullopt;
  const auto dialect = launcher_module(words[flag + 1]);
  return dialect ? std::optional(Unwrapped{*dialect, rest_of(words, flag + 2), words.front()}) : std::nullopt;
}

bool is_launcher(const std::vector<std::string>& command) {
  if (unwrap_launcher(command)) return true;
  return command.size() > 1 && is_python(command.front()) && unwrap_launcher(rest_of(command, 1));
}

}  // namespace tandem
