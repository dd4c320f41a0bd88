#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem {

// In the message of the error.
constexpr const char* kForeignValue = "not written by a process of this run";

// Makes a c10d store private that others can reach, as they can a TCPStore: a key is visible only as a hash, and values
// are sealed with a secret of the run. A value that others wrote or changed is an error where it is read.
c10::intrusive_ptr<c10d::Store> make_sealed_store(c10::intrusive_ptr<c10d::Store> store, std::string secret);

}  // namespace tandem
