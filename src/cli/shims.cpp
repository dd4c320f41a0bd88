#include "cli/shims.h"

#include <tandem/error.h>

#include <filesystem>

#include "base/program.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/dispatch.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct ShimOptions {};

template <class Visitor>
void visit_fields(ShimOptions&, Visitor&&) {}

const ProgramText kShimsText{
    .name = "tandem shims",
    .arguments = "DIR",
    .about = "Makes links named torchrun and accelerate, so that scripts which call those run with tandem unchanged.",
    .examples = {"tandem shims ~/tandem-bin && export PATH=~/tandem-bin:$PATH"}};

void make_link(const fs::path& link, const fs::path& program) {
  std::error_code error;
  if (fs::is_symlink(link) && fs::equivalent(link, program, error)) return;
  if (fs::exists(fs::symlink_status(link))) {
    fail(ErrorKind::Usage, str("tandem shims: ", link, " is there already, and is not a link to tandem"),
         "name another folder, or move it away");
  }
  fs::create_symlink(program, link, error);
  if (error) {
    fail(ErrorKind::Launch, str("tandem shims: cannot make ", link, ": ", error.message()),
         "check the folder's rights");
  }
}

int run_shims(std::span<const std::string> args) {
  ShimOptions options;
  const LoadedConfig loaded = load_config(options, args, kShimsText);
  if (loaded.text) return print(*loaded.text);
  if (loaded.rest.size() != 1) {
    fail(ErrorKind::Usage, str("tandem shims: one folder is taken, ", loaded.rest.size(), " were given"),
         str("try `", kShimsText.examples.front(), '`'));
  }
  const fs::path folder = fs::absolute(loaded.rest.front());
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    fail(ErrorKind::Launch, str("tandem shims: cannot make ", folder, ": ", error.message()), "name another folder");
  }
  for (const char* name : {"torchrun", "accelerate"}) make_link(folder / name, own_program());
  return print(
      str("torchrun and accelerate in ", folder, " are tandem now; to use them:\n  export PATH=", folder, ":$PATH\n"));
}

}  // namespace

int run_as(std::string_view link, std::span<const std::string> args) {
  if (link == "torchrun") return run_program(Dialect::Torchrun, args);
  if (!args.empty() && args.front() == "launch") return run_program(Dialect::Accelerate, args.subspan(1));
  const auto real = find_on_path(link);
  if (!real) {
    fail(ErrorKind::Launch,
         str("accelerate: only `accelerate launch` is tandem's, and the real accelerate is not on PATH"),
         "pip install accelerate, or call `accelerate launch`");
  }
  replace_process(*real, args);
}

bool is_link_name(std::string_view name) { return name == "torchrun" || name == "accelerate"; }

Command shims_command() {
  return make_command<ShimOptions>("shims", "make links named torchrun and accelerate that are tandem", run_shims);
}

}  // namespace tandem
