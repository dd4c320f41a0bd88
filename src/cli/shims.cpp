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
    .about =
        "Creates links named torchrun and accelerate to tandem, so that scripts that call them use tandem unchanged.",
    .examples = {"tandem shims ~/tandem-bin && export PATH=~/tandem-bin:$PATH"}};

void make_link(const fs::path& link, const fs::path& program) {
  std::error_code error;
  if (fs::is_symlink(link) && fs::equivalent(link, program, error)) return;
  if (fs::exists(fs::symlink_status(link))) {
    fail(ErrorKind::Usage, str("tandem shims: ", link, " exists and is not a link to tandem"),
         "choose another folder, or move it away");
  }
  fs::create_symlink(program, link, error);
  if (error) {
    fail(ErrorKind::Launch, str("tandem shims: cannot create ", link, ": ", error.message()),
         "check the permissions of the folder");
  }
}

int run_shims(std::span<const std::string> args) {
  ShimOptions options;
  const LoadedConfig loaded = load_config(options, args, kShimsText);
  if (loaded.text) return print(*loaded.text);
  if (loaded.rest.size() != 1) {
    fail(ErrorKind::Usage, str("tandem shims: expects one folder, got ", loaded.rest.size()),
         str("try `", kShimsText.examples.front(), '`'));
  }
  const fs::path folder = fs::absolute(loaded.rest.front());
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    fail(ErrorKind::Launch, str("tandem shims: cannot create ", folder, ": ", error.message()),
         "choose another folder");
  }
  for (const char* name : {"torchrun", "accelerate"}) make_link(folder / name, own_program());
  return print(str("torchrun and accelerate in ", folder, " now start tandem; to use them:\n  export PATH=", folder,
                   ":$PATH\n"));
}

}  // namespace

int run_as(std::string_view link, std::span<const std::string> args) {
  if (link == "torchrun") return run_program(Dialect::Torchrun, args);
  if (!args.empty() && args.front() == "launch") return run_program(Dialect::Accelerate, args.subspan(1));
  const auto real = find_on_path(link);
  if (!real) {
    fail(ErrorKind::Launch,
         str("accelerate: tandem implements only `accelerate launch`, and the real accelerate is not on PATH"),
         "pip install accelerate, or use `accelerate launch`");
  }
  replace_process(*real, args);
}

bool is_link_name(std::string_view name) { return name == "torchrun" || name == "accelerate"; }

Command shims_command() {
  return make_command<ShimOptions>("shims", "create links named torchrun and accelerate to tandem", run_shims);
}

}  // namespace tandem
