#pragma once

#include <tandem/config.h>
#include <tandem/error.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"

namespace tandem {

// The command line of a command that takes a job name, before or after its flags.
struct JobArgument {
  std::optional<std::string> name;  // none: the newest job
  std::optional<std::string> text;  // of --help or --dump-config, to print
};

template <HasFields Config>
JobArgument load_job_argument(Config& config, std::span<const std::string> args, const ProgramText& program) {
  LoadedConfig loaded = load_config(config, args, program);
  if (loaded.rest.size() > 1) {
    std::vector<std::string> name_last(args.begin(), args.end() - static_cast<std::ptrdiff_t>(loaded.rest.size()));
    name_last.insert(name_last.end(), loaded.rest.begin() + 1, loaded.rest.end());
    name_last.push_back(loaded.rest.front());
    loaded = load_config(config, name_last, program);
  }
  if (loaded.rest.size() > 1) {
    fail(ErrorKind::Usage, str(program.name, ": '", loaded.rest.front(), "' is an unexpected argument"),
         "give one job name; `tandem ps --all` lists them");
  }
  std::optional<std::string> name;
  if (!loaded.rest.empty()) name = loaded.rest.front();
  return {.name = std::move(name), .text = std::move(loaded.text)};
}

}  // namespace tandem
