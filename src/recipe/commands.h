#pragma once

#include <tandem/config.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Runs a command, given the whole command line, the place of the first word after the command, and what its help says.
// Returns the exit code.
using CommandRun =
    std::function<int(const std::vector<std::string>& words, std::size_t first_flag, const ProgramText& program)>;

struct RecipeCommand {
  std::string name;
  std::string about;  // a phrase: "loss and ROUGE of a trained model"
  CommandRun run;     // worker_command or plain_command (recipe/run_commands.h)
  std::vector<std::string> examples = {};
  std::string arguments = {};  // what may follow the flags, or precede them: "file [file ...]"
};

// A program, or a command, that has commands of its own.
struct CommandTable {
  std::string name;     // "tandem summarize"
  std::string about;    // one sentence
  std::string example;  // a whole command line
  std::vector<RecipeCommand> commands;
};

// The command of that name, or nullptr.
const RecipeCommand* find_command(const CommandTable& table, std::string_view name);

// What the command says of itself: "tandem summarize evaluate", "Loss and ROUGE of a trained model."
ProgramText program_text(const CommandTable& table, const RecipeCommand& command);

// The help for `--help`, `-h` and `help`; any other word is an Error of kind Usage that names the nearest command.
std::string help_or_fail(const CommandTable& table, std::string_view word);

}  // namespace tandem
