#include <tandem/error.h>

#include "base/text.h"
#include "cli/command.h"
#include "config/flags.h"

namespace tandem {
namespace {

struct CompletionOptions {};

template <class Visitor>
void visit_fields(CompletionOptions&, Visitor&&) {}

const ProgramText kCompletionText{.name = "tandem completion",
                                  .arguments = "bash|zsh|fish",
                                  .about = "Prints a shell script that completes commands, flags and program names.",
                                  .examples = {"source <(tandem completion bash)", "source <(tandem completion zsh)",
                                               "tandem completion fish | source"}};

// Programs on PATH are searched when the user presses Tab, so new ones are found.
constexpr std::string_view kBash = R"sh(_tandem() {
  local current=${COMP_WORDS[COMP_CWORD]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="@NAMES@ $(compgen -c tandem- | sed 's/^tandem-//')"
  else
    case ${COMP_WORDS[1]} in
@CASES@    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _tandem tandem
)sh";

constexpr std::string_view kZsh = R"sh(#compdef tandem
_tandem() {
  local -a choices
  if (( CURRENT == 2 )); then
    choices=(@NAMES@ ${${(k)commands[(I)tandem-*]}#tandem-})
  else
    case $words[2] in
@CASES@    esac
    _files
  fi
  compadd -a choices
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _tandem tandem
)sh";

std::vector<Field> all_fields(const Command& command) {
  std::vector<Field> fields = command.fields;
  for (Field& field : flag_table<LoadOptions>()) fields.push_back(std::move(field));
  return fields;
}

std::string words_of(const Command& command) {
  std::vector<std::string> words = command.arguments;
  for (const Field& field : all_fields(command)) {
    for (std::string& flag : flag_names(field)) words.push_back(std::move(flag));
  }
  return join(words, " ");
}

std::string names_of(std::span<const Command> commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  return join(names, " ");
}

// Fills the frame with one `case` line per command: `before`, its words, `after`.
std::string script(std::string_view frame, std::string_view before, std::string_view after) {
  const std::vector<Command> commands = all_commands();
  std::string cases;
  for (const Command& command : commands) {
    cases += str("      ", command.name, ") ", before, words_of(command), after, " ;;\n");
  }
  return replace_all(replace_all(std::string(frame), "@NAMES@", names_of(commands)), "@CASES@", cases);
}

std::string fish_quoted(const std::string& text) { return str('\'', replace_all(text, "'", "\\'"), '\''); }

std::string fish_flags(const Command& command) {
  const std::string here = str("complete -c tandem -n '__fish_seen_subcommand_from ", command.name, "' ");
  std::string text;
  for (const std::string& word : command.arguments) text += str(here, "-f -a ", word, '\n');
  for (const Field& field : all_fields(command)) {
    const std::string value = field.shape == ValueShape::Switch ? "" : " -r";
    for (const std::string& flag : flag_names(field)) {
      const std::string name = flag.starts_with("--") ? str("-l ", flag.substr(2)) : str("-s ", flag.substr(1));
      text += str(here, name, value, " -d ", fish_quoted(field.help), '\n');
    }
  }
  return text;
}

std::string fish_script() {
  std::string text =
      "complete -c tandem -n __fish_use_subcommand -f -a "
      "'(complete -C tandem- | string replace -r \"^tandem-(\\S+).*\" \"\\$1\")'\n";
  for (const Command& command : all_commands()) {
    text += str("complete -c tandem -n __fish_use_subcommand -f -a ", command.name, " -d ",
                fish_quoted(command.summary), '\n');
    text += fish_flags(command);
  }
  return text;
}

int run_completion(std::span<const std::string> args) {
  CompletionOptions options;
  const LoadedConfig loaded = load_config(options, args, kCompletionText);
  if (loaded.text) return print(*loaded.text);
  const std::string shell = loaded.rest.size() == 1 ? loaded.rest.front() : "";
  if (shell == "bash") return print(script(kBash, "words='", "'"));
  if (shell == "zsh") return print(script(kZsh, "choices=(", ")"));
  if (shell == "fish") return print(fish_script());
  fail(ErrorKind::Usage,
       str("tandem completion: the shell '", join(loaded.rest, " "), "' is not one of bash, zsh, fish"),
       str("try `", kCompletionText.examples.front(), '`'));
}

}  // namespace

Command completion_command() {
  return make_command<CompletionOptions>("completion", "print a completion script for bash, zsh or fish",
                                         run_completion, {"bash", "zsh", "fish"});
}

}  // namespace tandem
