#pragma once

#include "text/samples.h"

namespace tandem {

// `builtin:packages`: long descriptions of Debian packages, and their synopses as summaries (src/text/packages.csv,
// made by tools/make_packages_csv.py). No source package has samples in both sets.
SummarySets read_packages();

}  // namespace tandem
