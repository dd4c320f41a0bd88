#include "recipes/segment/commands.h"

namespace tandem::segment {

CommandTable commands() {
  return {
      .name = "tandem segment",
      .about = "Trains DeepLab networks to segment images, from scribbles or masks; evaluates them and writes masks.",
      .example = "tandem segment train --preset demo --nproc 2",
      .commands = {prepare_command(), train_command(), evaluate_command(), predict_command(), score_command(),
                   export_command(), shapes_command()}};
}

}  // namespace tandem::segment
