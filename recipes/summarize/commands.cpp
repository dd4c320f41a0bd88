#include "recipes/summarize/commands.h"

#include <fcntl.h>
#include <tandem/autocast.h>
#include <tandem/error.h>
#include <torch/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/program.h"
#include "base/text.h"
#include "models/gpt2/generate.h"

namespace tandem {

namespace fs = std::filesystem;

std::string typed_path(const fs::path& path) {
  const fs::path relative = fs::proximate(path);
  return shell_quoted((relative.begin()->native() == ".." ? path : relative).native());
}

std::string tandem_program() {
  const fs::path beside = own_program().parent_path() / "tandem";
  const auto is_beside = [&](const fs::path& folder) {
    std::error_code missing;
    return fs::equivalent(folder / "tandem", beside, missing);
  };
  const std::vector<fs::path> folders = path_folders();
  return std::ranges::any_of(folders, is_beside) ? "tandem" : typed_path(beside);
}

void validate(const TrainedOptions& options) {
  if (options.from.empty()) fail(ErrorKind::Config, "from is empty", "name the folder of a run, such as runs/latest");
}

Summarizer load_trained(const TrainedOptions& options, const Communicator& comm) {
  Summarizer model = load_summarizer(options.from);
  const Precision precision = choose_precision(options.precision, facts_of(comm.device())).precision;
  const auto type = precision == Precision::Bf16   ? torch::kBFloat16
                    : precision == Precision::Fp16 ? torch::kHalf
                                                   : torch::kFloat;
  prepare_to_generate(model.net, comm.device(), type);
  return model;
}

std::unique_ptr<Progress> make_progress(const ProgressOptions& options, const World& world) {
  if (!world.is_main()) return nullptr;
  return std::make_unique<Progress>(STDERR_FILENO, choose_style(STDERR_FILENO, options), has_colour(STDERR_FILENO));
}

void show_written(Progress& progress, std::int64_t written, std::int64_t all) {
  progress.update(str("written ", written, '/', all), static_cast<double>(written) / static_cast<double>(all));
}

void check_output(const fs::path& path, const fs::path& input) {
  std::error_code missing;
  if (path.empty() || fs::equivalent(path, input, missing)) {
    fail(ErrorKind::Config, path.empty() ? "output is empty" : str("output is ", path, ", which is the input"),
         "name another file with --output");
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool can_write = opened && ::faccessat(opened.get(), ".", W_OK, AT_EACCESS) == 0;
  const int error = can_write ? EISDIR : errno;
  if (can_write && !fs::is_directory(path)) return;
  fail(ErrorKind::Data, str("cannot write ", path, ": ", errno_text(error)),
       "check the folder, its permissions and the free space");
}

void make_new_folder(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  const fs::path wanted = path.has_filename() ? path : path.parent_path();  // without the slash at its end
  const fs::path temporary = str(wanted, ".tmp-", ::getpid());
  const auto refuse = [&](const std::error_code& why) {
    fail(ErrorKind::Data, str("cannot make ", wanted, ": ", why.message()),
         "check the folder above it, and its rights");
  };
  std::error_code error;
  fs::create_directories(temporary, error);
  if (error) refuse(error);
  try {
    fill(temporary);
    fs::rename(temporary, wanted);
  } catch (const Error& failure) {
    fs::remove_all(temporary, error);
    fail(failure.kind(), replace_all(failure.message(), temporary.native(), wanted.native()), failure.hint());
  } catch (const fs::filesystem_error& failure) {
    fs::remove_all(temporary, error);
    refuse(failure.code());
  }
}

fs::path validation_file(const fs::path& from) {
  check_model(from);
  const auto description = find_description(from);
  fs::path file = description ? description->parent_path() / "validation.csv" : "";
  if (!file.empty() && fs::exists(file)) return file;
  fail(ErrorKind::Config, str(from, " does not say which rows to use"), "name a file: --valid or --test FILE.csv");
}

}  // namespace tandem
