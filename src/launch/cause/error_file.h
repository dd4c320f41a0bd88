#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launch/cause/evidence.h"

namespace tandem {

// The error in a worker's TORCHELASTIC_ERROR_FILE, which has torchrun's format; empty if it cannot be parsed.
Evidence read_error_file(std::string_view json);

// The content of the launcher's own error file, as torchrun writes it: the file of the rank that caused the failure
// with its exit code added, or a new one from the evidence if that rank wrote none. `now` is in seconds since 1970.
std::string write_error_file(std::string_view json_of_cause, const Evidence& evidence, int exit_code, std::int64_t now);

}  // namespace tandem
