#pragma once

// All of this module, for a recipe in one file.
#include "recipe/cadence.h"
#include "recipe/commands.h"
#include "recipe/content_key.h"
#include "recipe/draft.h"
#include "recipe/find_model.h"
#include "recipe/held_out.h"
#include "recipe/model_files.h"
#include "recipe/optimization.h"
#include "recipe/optimize_options.h"
#include "recipe/output.h"
#include "recipe/prediction.h"
#include "recipe/row_progress.h"
#include "recipe/run_commands.h"
#include "recipe/trained_options.h"
