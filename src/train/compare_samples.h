#pragma once

#include <tandem/communicator.h>

#include <cstdint>
#include <span>

namespace tandem {

// Every rank calls it with the samples that it counts in this step (from 1). One that two ranks count is an Error on
// every rank, which names both. False: no rank knows its samples, so nothing was compared.
bool compare_samples(std::span<const std::int64_t> ids, std::int64_t step, Communicator& comm);

}  // namespace tandem
