#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "cli/dispatch.h"
#include "cli/shims.h"

int main(int argc, char** argv) {
  tandem::fill_closed_streams();
  try {
    const std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
    const std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "tandem";
    return tandem::is_link_name(name) ? tandem::run_as(name, args) : tandem::dispatch(args);
  } catch (const std::exception& error) {
    const int code = tandem::exit_code(error);
    const bool notebook = tandem::is_notebook(tandem::environment_variable);  // which shows no exit code
    tandem::write_all(STDERR_FILENO, tandem::describe(error));
    if (notebook) tandem::write_all(STDERR_FILENO, tandem::str("tandem: failed, exit code ", code, '\n'));
    return code;
  }
}
