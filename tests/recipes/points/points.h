#pragma once

#include "recipe/commands.h"

namespace tandem::points {
CommandTable commands();
}
