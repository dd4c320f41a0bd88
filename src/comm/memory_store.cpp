#include "comm/memory_store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "comm/shared_log.h"

namespace tandem {
namespace {

using std::chrono::milliseconds;
using StoreValue = std::vector<std::uint8_t>;

StoreValue bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
std::string text_of(const StoreValue& bytes) { return {bytes.begin(), bytes.end()}; }

// A change of the store, as an entry of the log.
struct Change {
  enum class Kind : char { Set = '=', Add = '+', CompareSet = '?', Delete = '-' };

  Kind kind = Kind::Set;
  std::string key = {};
  std::string value = {};
  std::string expected = {};  // of CompareSet
  std::string id = {};
};

void put(std::string& entry, std::string_view field) {
  const auto size = static_cast<std::uint32_t>(field.size());
  entry.append(reinterpret_cast<const char*>(&size), sizeof size).append(field);
}

// Nothing left to take is an empty field.
std::string take(std::string_view& entry) {
  std::uint32_t size = 0;
  if (entry.size() < sizeof size) return {};
  std::memcpy(&size, entry.data(), sizeof size);
  entry.remove_prefix(sizeof size);
  std::string field(entry.substr(0, size));
  entry.remove_prefix(field.size());
  return field;
}

std::string pack(const Change& change) {
  std::string entry(1, static_cast<char>(change.kind));
  for (const std::string* field : {&change.key, &change.value, &change.expected, &change.id}) put(entry, *field);
  return entry;
}

Change unpack(std::string_view entry) {
  Change change;
  change.kind = static_cast<Change::Kind>(entry.empty() ? '\0' : entry.front());
  entry.remove_prefix(std::min<std::size_t>(1, entry.size()));
  for (std::string* field : {&change.key, &change.value, &change.expected, &change.id}) *field = take(entry);
  return change;
}

// Unique on the host, so that a store recognises its own changes.
std::string new_name() {
  static std::atomic<int> count = 0;
  return str(::getpid(), '.', ++count);
}

// Every rank applies the same changes in the same order, so all have the same values. Used by several threads.
class MemoryStore : public c10d::Store {
 public:
  MemoryStore(std::shared_ptr<SharedLog> log, milliseconds timeout) : Store(timeout), log_(std::move(log)) {}

  c10::intrusive_ptr<Store> clone() override { return c10::make_intrusive<MemoryStore>(log_, timeout_); }

  void set(const std::string& key, const StoreValue& value) override {
    make({.kind = Change::Kind::Set, .key = key, .value = text_of(value)});
  }

  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return to_integer(make({.kind = Change::Kind::Add, .key = key, .value = str(amount)})).value_or(0);
  }

  StoreValue compareSet(const std::string& key, const StoreValue& expected, const StoreValue& desired) override {
    return bytes_of(
        make({.kind = Change::Kind::CompareSet, .key = key, .value = text_of(desired), .expected = text_of(expected)}));
  }

  bool deleteKey(const std::string& key) override {
    return make({.kind = Change::Kind::Delete, .key = key}) == kDeleted;
  }

  StoreValue get(const std::string& key) override {
    wait({key});
    const std::lock_guard lock(mutex_);
    return bytes_of(values_[key]);
  }

  bool check(const std::vector<std::string>& keys) override {
    const std::lock_guard lock(mutex_);
    catch_up();
    return std::ranges::all_of(keys, [&](const std::string& key) { return values_.contains(key); });
  }

  std::int64_t getNumKeys() override {
    const std::lock_guard lock(mutex_);
    catch_up();
    return static_cast<std::int64_t>(values_.size());
  }

  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
    wait_until(Deadline(timeout), [&] { return check(keys); });
  }

 private:
  static constexpr const char* kDeleted = "deleted";

  // Appends the change, and returns its result once it has been applied here.
  std::string make(Change change) {
    const std::lock_guard lock(mutex_);
    change.id = str(name_, '.', ++num_changes_);
    log_->append(pack(change));
    std::optional<std::string> result;
    wait_until(Deadline(timeout_), [&] { return (result = catch_up(change.id)).has_value(); });
    return *result;
  }

  template <class Condition>
  void wait_until(const Deadline& deadline, const Condition& is_true) {
    while (true) {
      const std::uint32_t epoch = log_->epoch();
      if (is_true()) return;
      if (deadline.passed()) C10_THROW_ERROR(DistStoreError, "timeout");
      log_->wait_for_change(epoch, deadline.end());
    }
  }

  // Applies the new changes of all ranks. Returns the result of change `id` if it is one of them.
  std::optional<std::string> catch_up(std::string_view id = "") {
    std::optional<std::string> result;
    while (const auto entry = log_->read(position_)) {
      const Change change = unpack(*entry);
      std::string outcome = apply(change);
      if (change.id == id) result = std::move(outcome);
    }
    return result;
  }

  std::string apply(const Change& change) {
    switch (change.kind) {
      case Change::Kind::Set: return values_[change.key] = change.value;
      case Change::Kind::Add: {
        std::string& value = values_[change.key];
        return value = str(to_integer(value).value_or(0) + to_integer(change.value).value_or(0));
      }
      case Change::Kind::CompareSet: {
        const auto found = values_.find(change.key);
        const bool is_new = found == values_.end();
        if (is_new ? change.expected.empty() : found->second == change.expected)
          return values_[change.key] = change.value;
        return is_new ? change.expected : found->second;
      }
      case Change::Kind::Delete: return values_.erase(change.key) > 0 ? kDeleted : "";
    }
    return {};
  }

  std::shared_ptr<SharedLog> log_;
  const std::string name_ = new_name();
  std::mutex mutex_;  // guards what follows
  std::size_t position_ = 0;
  int num_changes_ = 0;
  std::map<std::string, std::string> values_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> make_memory_store(int memory_fd, milliseconds timeout) {
  return c10::make_intrusive<MemoryStore>(std::make_shared<SharedLog>(memory_fd), timeout);
}

}  // namespace tandem
