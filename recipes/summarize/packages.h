#pragma once

#include "recipes/summarize/samples.h"

namespace tandem::summarize {

// `builtin:packages`: long descriptions of Debian packages, and their synopses as summaries
// (recipes/summarize/packages.csv, made by tools/make_packages_csv.py). No source package has samples in both sets.
SummarySets read_packages();

}  // namespace tandem::summarize
