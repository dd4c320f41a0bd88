#pragma once

#include "recipe/commands.h"

namespace tandem::segment {

// `tandem segment`.
CommandTable commands();

// Each in a file of its name, the last in shapes_command.cpp.
RecipeCommand prepare_command();
RecipeCommand train_command();
RecipeCommand evaluate_command();
RecipeCommand predict_command();
RecipeCommand score_command();
RecipeCommand export_command();
RecipeCommand shapes_command();

}  // namespace tandem::segment
