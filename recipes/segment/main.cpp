#include "recipe/run_commands.h"
#include "recipes/segment/commands.h"
#include "recipes/segment/guide_flags.h"

int main(int argc, char** argv) {
  return tandem::run_commands(tandem::segment::commands(), tandem::segment::command_first({argv, argv + argc}));
}
