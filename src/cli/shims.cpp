#include "cli/shims.h"

#include <fcntl.h>
#include <tandem/error.h>

#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "base/json.h"
#include "base/program.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/dispatch.h"
#include "shim.h"

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
        "Creates links named torchrun and accelerate to tandem, so that scripts that call them use tandem unchanged,\n"
        "and a Python module that does the same for `python -m torch.distributed.run` and `.launch`.",
    .examples = {"tandem shims ~/tandem-bin && export PATH=~/tandem-bin:$PATH PYTHONPATH=~/tandem-bin/python"}};

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

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  fail(ErrorKind::Launch, str("tandem shims: cannot create ", folder, ": ", error.message()), "choose another folder");
}

// For `python -m torch.distributed.run`: a module that Python imports at startup.
void write_module(const fs::path& folder) {
  make_folder(folder);
  const fs::path path = folder / "sitecustomize.py";
  const std::string_view first_line = kShim.substr(0, kShim.find('.'));
  if (fs::exists(path) && !read_if_there(path).value_or("").starts_with(first_line)) {
    fail(ErrorKind::Usage, str("tandem shims: ", path, " exists and is not ours"), "choose another folder");
  }
  const std::string program = json_text(Json(own_program().string()));  // a string in Python, too
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file && write_all(file.get(), replace_all(std::string(kShim), "\"TANDEM_PROGRAM\"", program))) return;
  fail(ErrorKind::Launch, str("tandem shims: cannot write ", path, ": ", errno_text(errno)),
       "check the permissions of the folder");
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
  make_folder(folder);
  for (const char* name : {"torchrun", "accelerate"}) make_link(folder / name, own_program());
  write_module(folder / "python");
  return print(
      str("torchrun, accelerate and `python -m torch.distributed.run` (and `.launch`) now start tandem; to use them:\n",
          "  export PATH=", folder, ":$PATH PYTHONPATH=", folder, "/python${PYTHONPATH:+:$PYTHONPATH}\n"));
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
