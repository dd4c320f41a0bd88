#include <tandem/error.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "cli/dispatch.h"

int main(int argc, char** argv) {
  try {
    return tandem::dispatch(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    tandem::write_all(STDERR_FILENO, tandem::describe(error));
    return tandem::exit_code(error);
  }
}
