#include "recipe/run_commands.h"
#include "recipes/segment/commands.h"

int main(int argc, char** argv) { return tandem::run_commands(tandem::segment::commands(), {argv, argv + argc}); }
