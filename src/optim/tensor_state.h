#pragma once

#include <tandem/optimizer.h>

#include <string_view>

namespace tandem {

// Copies `stored` into the tensors of the same names. An Error lists differences in names, shapes and types, and
// nothing is changed. `owner` begins its message: "optimizer".
void load_tensors(const NamedTensorList& own, const NamedTensorList& stored, std::string_view owner);

}  // namespace tandem
