#pragma once

#include <tandem/world.h>

#include <chrono>
#include <memory>
#include <optional>

#include "comm/shm/board.h"
#include "comm/shm/posting.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem {

// Compares the collectives of the ranks and detects lost peers, which NCCL does not. `post` is called by the thread
// that starts collectives, `failure` by the watchdog thread.
class Roll {
 public:
  virtual ~Roll() = default;

  // Publishes the next collective of this rank. An Error if a rank of the same host has posted a different one.
  virtual void post(const Posting& posting) = 0;

  // A lost rank, a timeout or a mismatch, if there is one. Called periodically; after an error of NCCL itself
  // (`is_suspicious`), a rank is considered lost after a shorter silence.
  virtual std::optional<Board::Failure> failure(bool is_suspicious) = 0;

  // Call at the end: the exit of this rank is no failure any more. Blocks until the other ranks have left too, for at
  // most a second: they may still be receiving data from this rank.
  virtual void leave() = 0;
};

// Ranks of one host, over shared memory.
std::unique_ptr<Roll> make_host_roll(c10d::Store& store, const World& world, std::chrono::milliseconds timeout);

// Ranks of several hosts, over the store: each sends a heartbeat with its progress twice a second. Collectives are not
// compared.
std::unique_ptr<Roll> make_store_roll(c10d::Store& store, const World& world, std::chrono::milliseconds timeout);

}  // namespace tandem
