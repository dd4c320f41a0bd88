#include "comm/store.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <tandem/error.h>
#include <tandem/units.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <optional>
#include <utility>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/clock.h"
#include "base/control_page.h"
#include "base/fd.h"
#include "base/run_memory.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "comm/memory_store.h"
#include "comm/sealed_store.h"
#include "comm/store_table.h"

namespace tandem {

using std::chrono::milliseconds;

namespace detail {

// Runs an operation on the store and turns c10d's exceptions into Errors.
template <class Operation>
auto translated(const std::string& what, Operation operation) {
  try {
    return operation();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    const bool is_foreign = text.find(kForeignValue) != text.npos;
    fail(ErrorKind::Comm, str("store: lost while ", what, ": ", text.substr(0, text.find('\n'))),
         is_foreign ? "set the same TANDEM_SECRET for all ranks; if it is, another program writes to the store"
                    : "rank 0 hosts the store and has probably exited; check its output");
  }
}

// The host name may have an IPv6 and an IPv4 address; rank 0 listens on the latter.
std::string address_of(const WorkerEnv& env) { return env.master_addr == "localhost" ? "127.0.0.1" : env.master_addr; }

// Listens on the loopback address only, if that is the address of the store. Otherwise, and if the port is in use, it
// is empty.
Fd listen_on_loopback(const std::string& address, int port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1) return {};
  if (ntohl(place.sin_addr.s_addr) >> IN_CLASSA_NSHIFT != IN_LOOPBACKNET) return {};
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool is_bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
  return is_bound && ::listen(socket.get(), SOMAXCONN) == 0 ? std::move(socket) : Fd();
}

// The connection to the store, as its host or as a client.
class StoreClient {
 public:
  StoreClient(const WorkerEnv& env, milliseconds timeout);
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  const World& world() const { return world_; }
  int meeting() const { return meeting_; }
  const c10::intrusive_ptr<c10d::Store>& table() const { return table_; }
  milliseconds timeout() const { return timeout_; }

  void set(const std::string& key, const std::string& value) {
    translated(str("setting '", key, '\''),
               [&] { table_->set(key, std::vector<std::uint8_t>(value.begin(), value.end())); });
  }

  std::int64_t add(const std::string& key, std::int64_t amount) {
    return translated(str("adding to '", key, '\''), [&] { return table_->add(key, amount); });
  }

  // False if the key is not set by the deadline.
  bool wait(const std::string& key, const Deadline& deadline) {
    return translated(str("waiting for '", key, '\''), [&] {
      try {
        table_->wait({key}, milliseconds(std::max(1, deadline.poll_ms())));
        return true;
      } catch (const c10::Error&) {
        if (deadline.passed()) return false;
        throw;
      }
    });
  }

  void abandon() { is_abandoned_ = true; }

  std::string get(const std::string& key) {
    const auto value = translated(str("reading '", key, '\''), [&] { return table_->get(key); });
    return {value.begin(), value.end()};
  }

  // A barrier: every rank arrives once; false if some rank has not by the deadline.
  void arrive(const std::string& meeting) {
    if (add(str(meeting, "/count"), 1) == world_.size) set(str(meeting, "/all"), "");
  }
  bool wait_for_everyone(const std::string& meeting, const Deadline& deadline) {
    return wait(str(meeting, "/all"), deadline);
  }

  // Waits for a key that `rank` sets; an Error if its process ends without.
  bool wait_for(int rank, const std::string& key, const Deadline& deadline) {
    if (!control_) return wait(key, deadline);
    while (!wait(key, Deadline(std::min<Deadline::Clock::duration>(kLook, deadline.left())))) {
      if (deadline.passed()) return false;
      if (has_ended(rank) && !table_->check({key})) {
        fail(ErrorKind::Rendezvous, str("rendezvous: rank ", rank, " ended while the others were waiting for it"),
             str("check the output of rank ", rank));
      }
    }
    return true;
  }

 private:
  static constexpr milliseconds kLook{200};

  bool has_ended(int rank) const {
    const int pid = control_->pid(rank);
    return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
  }

  c10::intrusive_ptr<c10d::Store> connect(const WorkerEnv& env);
  c10::intrusive_ptr<c10d::Store> meet_in_memory();

  World world_;
  milliseconds timeout_;
  std::optional<int> memory_;           // inherited: no server is needed
  std::optional<ControlPage> control_;  // of the launcher, if all ranks are its children
  bool hosts_;
  bool is_abandoned_ = false;
  int meeting_ = 0;
  int exceptions_ = std::uncaught_exceptions();
  c10::intrusive_ptr<c10d::Store> table_;
};

StoreClient::StoreClient(const WorkerEnv& env, milliseconds timeout)
    : world_(env.world),
      timeout_(timeout),
      memory_(inherited_memory(env)),
      control_(memory_ ? ControlPage::open(env.control_fd) : std::nullopt),
      hosts_(!memory_ && env.world.is_main() && !env.launcher_hosts_store),
      table_(connect(env)) {}

StoreClient::~StoreClient() {
  const bool has_failed = is_abandoned_ || std::uncaught_exceptions() > exceptions_;
  try {
    arrive("left");
    if (hosts_ && !has_failed) wait_for_everyone("left", Deadline(timeout_));
  } catch (const Error&) {
    // The store is gone: there is nothing to wait for.
  }
}

// The n-th time that a rank joins, it meets the other ranks in their n-th time.
c10::intrusive_ptr<c10d::Store> StoreClient::meet_in_memory() {
  auto store = make_memory_store(*memory_, timeout_);
  meeting_ = static_cast<int>(store->add(str("joined by ", world_.rank), 1)) - 1;
  return c10::make_intrusive<c10d::PrefixStore>(str(meeting_), std::move(store));
}

c10::intrusive_ptr<c10d::Store> StoreClient::connect(const WorkerEnv& env) {
  if (world_.size == 1) return c10::make_intrusive<c10d::HashStore>();
  if (memory_) return meet_in_memory();
  if (env.master_port == 0) {
    fail(ErrorKind::Rendezvous, str("rendezvous: WORLD_SIZE is ", world_.size, ", but MASTER_PORT is not set"),
         "start the program with `tandem run -n N`, or set MASTER_ADDR and MASTER_PORT");
  }
  Fd listener = hosts_ ? listen_on_loopback(address_of(env), env.master_port) : Fd();
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(env.master_port);
  options.isServer = hosts_;
  options.waitWorkers = false;
  options.timeout = timeout_;
  if (listener) options.masterListenFd = listener.get();
  try {
    c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::TCPStore>(address_of(env), options);
    listener.release();  // the server owns it now
    if (!env.secret.empty()) store = make_sealed_store(std::move(store), env.secret);
    // Each attempt of a restarted run has its own keys.
    return c10::make_intrusive<c10d::PrefixStore>(str("tandem/", env.restart_count), std::move(store));
  } catch (const c10::Error&) {
    const std::string address = str(env.master_addr, ':', env.master_port);
    if (hosts_) {
      fail(ErrorKind::Rendezvous, str("rendezvous: rank 0 cannot host the store at ", address),
           "another program may use that port; `tandem run` picks a free one");
    }
    fail(ErrorKind::Rendezvous,
         str("rendezvous: the store at ", address, " was not reached within ", duration_text(timeout_)),
         "rank 0 hosts it: check its output, MASTER_ADDR and MASTER_PORT");
  }
}

}  // namespace detail

namespace {

void wait_for_all(detail::StoreClient& client) {
  const Deadline deadline(client.timeout());
  std::vector<std::string> missing;
  for (int rank = 0; rank < client.world().size; ++rank) {
    if (!client.wait_for(rank, str("joined/", rank), deadline)) missing.push_back(str(rank));
  }
  if (missing.empty()) return;
  fail(ErrorKind::Rendezvous,
       str("rendezvous: of ", client.world().size, " ranks, ", missing.size(), " did not join within ",
           duration_text(client.timeout()), ": ", join(missing, ", ")),
       str("check the output of those ranks",
           client.world().num_nodes > 1 ? ", and that TANDEM_SECRET is the same on all hosts" : ""));
}

[[noreturn]] void fail_unset(const std::string& key, milliseconds timeout) {
  fail(ErrorKind::Timeout, str("store: nobody set '", key, "' within ", duration_text(timeout)),
       "the rank that should have set it may have failed; check its output");
}

// Separates the keys of callers from the ones used here.
std::string user_key(const std::string& key) { return str("user/", key); }

}  // namespace

Store Store::join(milliseconds timeout) {
  const WorkerEnv env = read_worker_env();
  auto client = std::make_unique<detail::StoreClient>(env, timeout);
  client->set(str("joined/", env.world.rank), "");
  wait_for_all(*client);
  return Store(std::move(client));
}

Store::Store(std::unique_ptr<detail::StoreClient> client) : client_(std::move(client)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

const World& Store::world() const { return client_->world(); }
int Store::meeting() const { return client_->meeting(); }

void Store::set(const std::string& key, const std::string& value) { client_->set(user_key(key), value); }

std::string Store::get(const std::string& key) {
  if (!client_->wait(user_key(key), Deadline(client_->timeout()))) fail_unset(key, client_->timeout());
  return client_->get(user_key(key));
}

std::int64_t Store::add(const std::string& key, std::int64_t amount) { return client_->add(user_key(key), amount); }

std::int64_t Store::sum(const std::string& key, std::int64_t value) {
  const std::string total = str("sum/", key);
  client_->add(total, value);
  client_->arrive(total);
  if (client_->wait_for_everyone(total, Deadline(client_->timeout()))) return client_->add(total, 0);
  fail(ErrorKind::Timeout,
       str("store: not all ranks came to the sum '", key, "' within ", duration_text(client_->timeout())),
       "every rank must call it; check the output of those that did not");
}

std::vector<std::string> Store::gather(const std::string& key, const std::string& value) {
  set(str(key, '/', world().rank), value);
  std::vector<std::string> values;
  for (int rank = 0; rank < world().size; ++rank) {
    const std::string theirs = str(key, '/', rank);
    const bool is_set = client_->wait_for(rank, user_key(theirs), Deadline(client_->timeout()));
    if (!is_set) fail_unset(theirs, client_->timeout());
    values.push_back(client_->get(user_key(theirs)));
  }
  return values;
}

c10::intrusive_ptr<c10d::Store> detail::StoreTable::of(Store& store) { return store.client_->table(); }

void Store::abandon() { client_->abandon(); }

}  // namespace tandem
