#include "recipes/summarize/commands.h"

#include <tandem/autocast.h>
#include <tandem/error.h>
#include <torch/torch.h>

#include <algorithm>

#include "base/program.h"
#include "base/text.h"

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

Summarizer load_trained(const TrainedOptions& options, const Communicator& comm) {
  Summarizer model = load_summarizer(options.from);
  const Precision precision = choose_precision(options.precision, facts_of(comm.device())).precision;
  const auto type = precision == Precision::Bf16   ? torch::kBFloat16
                    : precision == Precision::Fp16 ? torch::kHalf
                                                   : torch::kFloat;
  model.net->to(comm.device(), type);
  model.net->eval();
  return model;
}

fs::path validation_file(const fs::path& from) {
  const fs::path checkpoint = fs::absolute(from).lexically_normal();
  for (const fs::path& run : {from, checkpoint.parent_path().parent_path()}) {
    if (fs::exists(run / "validation.csv")) return run / "validation.csv";
  }
  fail(ErrorKind::Config, str(from, " does not say what to use"), "name a file: --valid or --test FILE.csv");
}

}  // namespace tandem
