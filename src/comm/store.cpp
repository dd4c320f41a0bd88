#include <tandem/error.h>
#include <tandem/store.h>
#include <tandem/units.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "base/worker_env.h"

namespace tandem {
namespace detail {

class StoreClient {
 public:
  World world;
  std::chrono::milliseconds timeout;
  c10::intrusive_ptr<c10d::Store> table;
};

}  // namespace detail

namespace {

using std::chrono::milliseconds;

std::string joined_key(int rank) { return str("joined/", rank); }

c10::intrusive_ptr<c10d::Store> connect(const WorkerEnv& env, milliseconds timeout) {
  if (env.world.size == 1) return c10::make_intrusive<c10d::HashStore>();
  if (env.master_port == 0) {
    fail(ErrorKind::Rendezvous, str("rendezvous: WORLD_SIZE is ", env.world.size, ", but MASTER_PORT is not set"),
         "start the program with `tandem run -n N`, or set MASTER_ADDR and MASTER_PORT");
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(env.master_port);
  options.isServer = env.world.is_main() && !env.launcher_hosts_store;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    // Each attempt of a restarted job sees a table of its own.
    return c10::make_intrusive<c10d::PrefixStore>(str("tandem/", env.restart_count),
                                                  c10::make_intrusive<c10d::TCPStore>(env.master_addr, options));
  } catch (const c10::Error& error) {
    const std::string address = str(env.master_addr, ':', env.master_port);
    if (options.isServer) {
      fail(ErrorKind::Rendezvous,
           str("rendezvous: rank 0 cannot host the store at ", address, ": ", error.what_without_backtrace()),
           "another program may hold that port; `tandem run` picks a free one");
    }
    fail(ErrorKind::Rendezvous,
         str("rendezvous: the store at ", address, " was not reached within ", duration_text(timeout)),
         "rank 0 hosts it: look for its error, and check MASTER_ADDR and MASTER_PORT");
  }
}

void wait_for_all(const detail::StoreClient& client) {
  const Deadline deadline(client.timeout);
  std::vector<std::string> missing;
  for (int rank = 0; rank < client.world.size; ++rank) {
    try {
      client.table->wait({joined_key(rank)}, milliseconds(std::max(1, deadline.poll_ms())));
    } catch (const c10::Error&) {
      missing.push_back(str(rank));
    }
  }
  if (missing.empty()) return;
  fail(ErrorKind::Rendezvous,
       str("rendezvous: of ", client.world.size, " ranks, ", missing.size(), " did not come within ",
           duration_text(client.timeout), ": ", join(missing, ", ")),
       "look at the output of those ranks");
}

}  // namespace

Store Store::join(milliseconds timeout) {
  const WorkerEnv env = read_worker_env();
  auto client = std::make_unique<detail::StoreClient>(
      detail::StoreClient{.world = env.world, .timeout = timeout, .table = connect(env, timeout)});
  client->table->set(joined_key(env.world.rank), std::vector<std::uint8_t>{1});
  wait_for_all(*client);
  return Store(std::move(client));
}

Store::Store(std::unique_ptr<detail::StoreClient> client) : client_(std::move(client)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

const World& Store::world() const { return client_->world; }

void Store::set(const std::string& key, const std::string& value) {
  client_->table->set(str("user/", key), std::vector<std::uint8_t>(value.begin(), value.end()));
}

std::string Store::get(const std::string& key) {
  const Stopwatch watch;
  try {
    client_->table->wait({str("user/", key)}, client_->timeout);
    const std::vector<std::uint8_t> value = client_->table->get(str("user/", key));
    return {value.begin(), value.end()};
  } catch (const c10::Error& error) {
    if (watch.elapsed() >= client_->timeout) {
      fail(ErrorKind::Timeout, str("store: nobody set '", key, "' within ", duration_text(client_->timeout)),
           "a rank that should have set it may have failed; look at its output");
    }
    fail(ErrorKind::Comm, str("store: lost while waiting for '", key, "': ", error.what_without_backtrace()),
         "rank 0 hosts the store and has probably ended; look at its output");
  }
}

std::int64_t Store::add(const std::string& key, std::int64_t amount) {
  return client_->table->add(str("user/", key), amount);
}

}  // namespace tandem
