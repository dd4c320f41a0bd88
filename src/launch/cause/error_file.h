#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launch/cause/evidence.h"

namespace tandem {

// What a worker wrote to its TORCHELASTIC_ERROR_FILE, in torchrun's format; empty where that makes no sense.
Evidence read_error_file(std::string_view json);

// The same format, for the error file of the launcher itself. As torchrun does it: the file of the rank that is the
// cause with its exit code added, or one made of the evidence where that rank wrote none. `now` is in seconds since
// 1970.
std::string write_error_file(std::string_view json_of_cause, const Evidence& evidence, int exit_code, std::int64_t now);

}  // namespace tandem
