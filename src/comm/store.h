#pragma once

#include <tandem/world.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tandem {

namespace detail {
class StoreClient;
struct StoreTable;
}  // namespace detail

// The rendezvous of a run: a key-value store for set-up and small values, not for tensors. On one host it lies in
// memory that the ranks inherit from their launcher; otherwise rank 0 hosts it (c10d's TCPStore), and its destructor
// there waits until the other ranks have disconnected, unless an exception is being handled. Used by one thread at a
// time.
class Store {
 public:
  // Blocks until every rank has joined. An Error of kind Rendezvous names the ranks that did not join in time, or the
  // address that could not be reached. A single rank uses a local store.
  static Store join(std::chrono::milliseconds timeout = std::chrono::minutes(2));

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  const World& world() const;

  // How often these ranks have met before in the memory that they inherit: a rank may join several times, and may run
  // several programs one after the other. Each time the store is empty.
  int meeting() const;

  void set(const std::string& key, const std::string& value);

  // Blocks until some rank has set the key; an Error of kind Timeout if none does.
  std::string get(const std::string& key);

  // Adds to a counter that starts at 0; returns the new value. Does not block.
  std::int64_t add(const std::string& key, std::int64_t amount);

  // The sum of the values of all ranks. Every rank calls it once per key.
  std::int64_t sum(const std::string& key, std::int64_t value);

  // The values of all ranks, in rank order. Every rank calls it once per key.
  std::vector<std::string> gather(const std::string& key, const std::string& value);

  // After a failure: the destructor does not wait for the other ranks.
  void abandon();

 private:
  friend struct detail::StoreTable;
  explicit Store(std::unique_ptr<detail::StoreClient> client);

  std::unique_ptr<detail::StoreClient> client_;
};

}  // namespace tandem
