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

// Where the ranks of a run meet: a small table of texts and counters that rank 0 hosts (c10d's TCPStore). It is for
// finding each other and for small results, not for tensors. Used by one thread at a time. When it goes, rank 0 waits
// for the others to let go of theirs (not when an exception ends it), so that nobody loses the table.
class Store {
 public:
  // Waits until every rank has joined. An Error of kind Rendezvous names the ranks that did not come in time, or the
  // address that could not be reached. A world of one has a table of its own.
  static Store join(std::chrono::milliseconds timeout = std::chrono::minutes(2));

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  const World& world() const;

  void set(const std::string& key, const std::string& value);

  // Waits until some rank has set it; an Error of kind Timeout when nobody does.
  std::string get(const std::string& key);

  // Adds to a counter that begins at 0; returns the new count. Does not wait.
  std::int64_t add(const std::string& key, std::int64_t amount);

  // The sum of the values of all ranks, on all ranks, each of which calls it once for a key.
  std::int64_t sum(const std::string& key, std::int64_t value);

  // The values of all ranks, in the order of ranks; each of them calls it once for a key.
  std::vector<std::string> gather(const std::string& key, const std::string& value);

  // The run has failed: when this goes, it waits for nobody.
  void abandon();

 private:
  friend struct detail::StoreTable;
  explicit Store(std::unique_ptr<detail::StoreClient> client);

  std::unique_ptr<detail::StoreClient> client_;
};

}  // namespace tandem
