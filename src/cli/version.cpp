#include "base/json.h"
#include "base/text.h"
#include "build_facts.h"
#include "cli/command.h"

namespace tandem {
namespace {

struct VersionOptions {
  bool json = false;
};

template <class Visitor>
void visit_fields(VersionOptions& o, Visitor&& field) {
  field("json", o.json, "print a JSON object");
}

const ProgramText kVersionText{.name = "tandem version",
                               .arguments = "",
                               .about = "Prints the version, the compiler, and the torch that this was built for.",
                               .examples = {"tandem version", "tandem version --json"}};

int run_version(std::span<const std::string> args) {
  VersionOptions options;
  const LoadedConfig loaded = load_config(options, args, kVersionText);
  if (loaded.text) return print(*loaded.text);
  if (!options.json) {
    return print(str("tandem ", kVersion, "\ncompiler ", kCompiler, "\nbuilt for torch ", kTorch, '\n'));
  }
  const Json facts = Json::Object{
      {"tandem", std::string(kVersion)}, {"compiler", std::string(kCompiler)}, {"torch", std::string(kTorch)}};
  return print(str(json_text(facts), '\n'));
}

}  // namespace

Command version_command() {
  return make_command<VersionOptions>("version", "print the version, the compiler and the torch it was built for",
                                      run_version);
}

}  // namespace tandem
