#include "recipe/run_commands.h"
#include "recipes/points/points.h"

int main(int argc, char** argv) { return tandem::run_commands(tandem::points::commands(), {argv, argv + argc}); }
