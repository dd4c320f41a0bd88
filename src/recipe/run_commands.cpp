#include "recipe/run_commands.h"

#include <tandem/run_worker.h>

namespace tandem {

int run_commands(const CommandTable& table, const std::vector<std::string>& words, std::size_t place) {
  const std::string word = words.size() > place ? words[place] : "--help";
  if (const RecipeCommand* command = find_command(table, word))
    return command->run(words, place + 1, program_text(table, *command));
  return run_command([&] { return help_or_fail(table, word); });
}

}  // namespace tandem
