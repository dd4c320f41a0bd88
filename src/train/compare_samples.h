#pragma once

#include <tandem/communicator.h>
#include <tandem/training.h>

#include <cstdint>
#include <span>

namespace tandem {

// Collective, before the first step. Samplers that do not give the same steps on every rank, since their seed or sizes
// differ, are an Error on every rank.
void compare_samplers(const SampleSource& source, Communicator& comm);

// Collective, with the samples that this rank counts in a step (from 1). A sample on two ranks is an Error on every
// rank, which names both. False: the sample ids are not known, nothing was compared.
bool compare_samples(std::span<const std::int64_t> ids, std::int64_t step, Communicator& comm);

}  // namespace tandem
