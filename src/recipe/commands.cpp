#include "recipe/commands.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/text.h"

namespace tandem {
namespace {

std::string help_text(const CommandTable& table) {
  std::size_t width = 0;
  for (const RecipeCommand& command : table.commands) width = std::max(width, command.name.size());
  std::string text = str("usage: ", table.name, " COMMAND [flags]\n\n", table.about, "\n\ncommands:\n");
  for (const RecipeCommand& command : table.commands) {
    text += str("  ", command.name, std::string(width + 2 - command.name.size(), ' '), command.about, '\n');
  }
  return text +
         str("\nexample:\n  ", table.example, "\n\n`", table.name, " COMMAND --help` lists the flags of a command.\n");
}

}  // namespace

const RecipeCommand* find_command(const CommandTable& table, std::string_view name) {
  const auto found = std::ranges::find(table.commands, name, &RecipeCommand::name);
  return found == table.commands.end() ? nullptr : &*found;
}

ProgramText program_text(const CommandTable& table, const RecipeCommand& command) {
  std::string about = str(command.about, '.');
  if ('a' <= about[0] && about[0] <= 'z') about[0] = static_cast<char>(about[0] - 'a' + 'A');
  return {.name = str(table.name, ' ', command.name),
          .arguments = command.arguments,
          .about = about,
          .examples = command.examples,
          .flags_anywhere = !command.arguments.empty()};
}

std::string help_or_fail(const CommandTable& table, std::string_view word) {
  if (word == "--help" || word == "-h" || word == "help") return help_text(table);
  std::vector<std::string> names;
  for (const RecipeCommand& command : table.commands) names.push_back(command.name);
  const auto meant = nearest(word, names);
  fail(ErrorKind::Usage, str(table.name, ": there is no command '", word, "'"),
       meant ? str("did you mean `", table.name, ' ', *meant, "`?")
             : str('`', table.name, " --help` lists the commands"));
}

}  // namespace tandem
