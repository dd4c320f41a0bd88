#include "recipe/run_commands.h"
#include "recipes/summarize/commands.h"

int main(int argc, char** argv) { return tandem::run_commands(tandem::summarize::commands(), {argv, argv + argc}); }
