#include <tandem/error.h>
#include <unistd.h>

#include <csignal>

#include "base/text.h"
#include "monitor/numbers.h"
#include "monitor/progress.h"
#include "recipe/run_commands.h"
#include "recipes/segment/commands.h"
#include "recipes/segment/prepare_maps.h"
#include "train/stop_request.h"

namespace tandem::segment {
namespace {

std::string result_text(const PreparedMaps& maps) {
  std::string text;
  for (const BadSample& bad : maps.left_out) text += str("left out  ", text_of(bad), '\n');
  if (!maps.left_out.empty()) text += str("unusable  ", counted(std::ssize(maps.left_out), "sample"), " left out\n");
  text += str("wrote ", counted(maps.written, "distance map"), "; ", maps.kept, " were there already\n");
  return maps.was_stopped ? text + "stopped: the same command continues\n" : text;
}

std::string prepare_folder(const PrepareOptions& options, std::span<const std::string> arguments) {
  if (!arguments.empty()) {
    fail(ErrorKind::Usage, str("prepare: '", arguments[0], "' is no flag"), "name the folder with --data FOLDER");
  }
  Progress progress(STDERR_FILENO, choose_style(STDERR_FILENO, {}), has_colour(STDERR_FILENO));
  const PreparedMaps maps =
      prepare_maps(options, {.on_progress =
                                 [&](std::int64_t num_done, std::int64_t num_samples) {
                                   progress.update(str("prepared ", num_done, '/', num_samples),
                                                   static_cast<double>(num_done) / static_cast<double>(num_samples));
                                 },
                             .should_stop = [] { return !StopRequest::signal_name().empty(); }});
  progress.finish();
  return result_text(maps);
}

// A signal stops it after the maps that are begun; then the process ends by that signal.
int run_prepare(const std::vector<std::string>& words, std::size_t first_flag, const ProgramText& program) {
  std::string signal;
  int code = 0;
  {
    const StopRequest stop;
    code = plain_command<PrepareOptions>(prepare_folder)(words, first_flag, program);
    signal = StopRequest::signal_name();
  }
  if (code != 0 || signal.empty()) return code;
  return 128 + (signal == "SIGINT" ? SIGINT : signal == "SIGHUP" ? SIGHUP : SIGTERM);
}

}  // namespace

RecipeCommand prepare_command() {
  return {
      .name = "prepare",
      .about = "write the distance maps of scribbles and pseudo labels",
      .run = run_prepare,
      .examples = {"tandem segment prepare --data VOC2012", "tandem segment prepare --data VOC2012 --lambda-s 7.389"}};
}

}  // namespace tandem::segment
