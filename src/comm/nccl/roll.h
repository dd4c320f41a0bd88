#pragma once

#include <tandem/world.h>

#include <chrono>
#include <memory>
#include <optional>

#include "comm/shm/board.h"
#include "comm/shm/posting.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem {

// The ranks call out what they do, since NCCL does not look: it neither compares collectives nor notices that a peer is
// gone. `post` comes from the thread that starts collectives, `failure` from another one that watches.
class Roll {
 public:
  virtual ~Roll() = default;

  // This rank starts its next collective. An Error when a rank of the same host has started another one in its place.
  virtual void post(const Posting& posting) = 0;

  // Why the ranks cannot go on: a rank is gone or did not come, or some do not agree. Asked again and again; once NCCL
  // has an error of its own (`is_suspicious`), less is needed to say that a rank is gone.
  virtual std::optional<Board::Failure> failure(bool is_suspicious) = 0;

  // This rank is done; that it is gone from now on is no failure. Returns when the others are done too, or in a second:
  // until then they may still be receiving what this rank has sent.
  virtual void leave() = 0;
};

// Ranks of one host, over shared memory.
std::unique_ptr<Roll> make_host_roll(c10d::Store& store, const World& world, std::chrono::milliseconds timeout);

// Ranks of several hosts, over the store: they say twice a second that they live, and how far they have come. What they
// call is not compared.
std::unique_ptr<Roll> make_store_roll(c10d::Store& store, const World& world, std::chrono::milliseconds timeout);

}  // namespace tandem
