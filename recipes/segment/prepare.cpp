#include <tandem/error.h>
#include <unistd.h>

#include "base/text.h"
#include "monitor/progress.h"
#include "recipe/run_commands.h"
#include "recipes/segment/commands.h"
#include "recipes/segment/prepare_maps.h"

namespace tandem::segment {
namespace {

std::string prepare_folder(const PrepareOptions& options, std::span<const std::string> arguments) {
  if (!arguments.empty()) {
    fail(ErrorKind::Usage, str("prepare: '", arguments[0], "' is no flag"), "name the folder with --data FOLDER");
  }
  Progress progress(STDERR_FILENO, choose_style(STDERR_FILENO, {}), has_colour(STDERR_FILENO));
  const PreparedCounts counts = prepare_maps(options, [&](std::int64_t num_done, std::int64_t num_samples) {
    progress.update(str("prepared ", num_done, '/', num_samples),
                    static_cast<double>(num_done) / static_cast<double>(num_samples));
  });
  progress.finish();
  return str("wrote ", counts.written, " distance maps; ", counts.kept, " were there already\n");
}

}  // namespace

RecipeCommand prepare_command() {
  return {
      .name = "prepare",
      .about = "write the distance maps of scribbles and pseudo labels",
      .run = plain_command<PrepareOptions>(prepare_folder),
      .examples = {"tandem segment prepare --data VOC2012", "tandem segment prepare --data VOC2012 --lambda-s 7.389"}};
}

}  // namespace tandem::segment
