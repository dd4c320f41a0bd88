#pragma once

#include <tandem/optimizer.h>

#include <string_view>

namespace tandem {

// Copies `stored` into the tensors of the same names. Other names, shapes or types: an Error that lists them, and
// nothing is changed. `owner` is whose state it is: "optimizer".
void load_tensors(const NamedTensorList& own, const NamedTensorList& stored, std::string_view owner);

}  // namespace tandem
