#pragma once

#include <tandem/store.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem::detail {

// What lies behind a Store, for c10d's own classes.
struct StoreTable {
  static c10::intrusive_ptr<c10d::Store> of(Store& store);
};

}  // namespace tandem::detail
