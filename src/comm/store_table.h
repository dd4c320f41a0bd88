#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "comm/store.h"

namespace tandem::detail {

// The c10d store behind a Store, for ProcessGroupNCCL.
struct StoreTable {
  static c10::intrusive_ptr<c10d::Store> of(Store& store);
};

}  // namespace tandem::detail
