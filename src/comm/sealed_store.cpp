#include "comm/sealed_store.h"

#include <utility>
#include <vector>

#include "base/seal.h"
#include "base/text.h"

namespace tandem {
namespace {

using std::chrono::milliseconds;
using StoreValue = std::vector<std::uint8_t>;

class SealedStore : public c10d::Store {
 public:
  SealedStore(c10::intrusive_ptr<Store> store, std::string secret)
      : Store(store->getTimeout()), store_(std::move(store)), secret_(std::move(secret)) {}

  c10::intrusive_ptr<Store> clone() override { return c10::make_intrusive<SealedStore>(store_->clone(), secret_); }

  void set(const std::string& key, const StoreValue& value) override {
    store_->set(hidden(key), sealed(key, {value.begin(), value.end()}));
  }

  StoreValue get(const std::string& key) override { return opened(key, store_->get(hidden(key))); }

  // The server would add to the bytes of a sealed number, so the ranks take turns.
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    while (true) {
      const StoreValue before = store_->check({hidden(key)}) ? store_->get(hidden(key)) : StoreValue();
      const std::int64_t sum = amount + (before.empty() ? 0 : number_in(opened(key, before)));
      if (amount == 0) return sum;
      const StoreValue after = sealed(key, str(sum));
      if (store_->compareSet(hidden(key), before, after) == after) return sum;
    }
  }

  StoreValue compareSet(const std::string& key, const StoreValue& expected, const StoreValue& desired) override {
    while (true) {
      const bool is_there = store_->check({hidden(key)});
      const StoreValue before = is_there ? store_->get(hidden(key)) : StoreValue();
      const StoreValue value = is_there ? opened(key, before) : StoreValue();
      if (value != expected) return is_there ? value : expected;
      const StoreValue after = sealed(key, {desired.begin(), desired.end()});
      if (store_->compareSet(hidden(key), before, after) == after) return desired;
    }
  }

  bool deleteKey(const std::string& key) override { return store_->deleteKey(hidden(key)); }
  bool check(const std::vector<std::string>& keys) override { return store_->check(hidden(keys)); }
  std::int64_t getNumKeys() override { return store_->getNumKeys(); }
  void wait(const std::vector<std::string>& keys) override { store_->wait(hidden(keys)); }
  void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
    store_->wait(hidden(keys), timeout);
  }
  const milliseconds& getTimeout() const noexcept override { return store_->getTimeout(); }
  void setTimeout(const milliseconds& timeout) override { store_->setTimeout(timeout); }

 private:
  std::string hidden(const std::string& key) const { return sealed_name(secret_, key); }
  std::vector<std::string> hidden(const std::vector<std::string>& keys) const {
    std::vector<std::string> names;
    for (const std::string& key : keys) names.push_back(hidden(key));
    return names;
  }

  StoreValue sealed(const std::string& key, const std::string& value) const {
    const std::string text = seal(secret_, key, value);
    return {text.begin(), text.end()};
  }

  StoreValue opened(const std::string& key, const StoreValue& bytes) const {
    const auto value = unseal(secret_, key, std::string(bytes.begin(), bytes.end()));
    if (!value) C10_THROW_ERROR(DistStoreError, str("the value was ", kForeignValue));
    return {value->begin(), value->end()};
  }

  static std::int64_t number_in(const StoreValue& value) {
    return to_integer(std::string(value.begin(), value.end())).value_or(0);
  }

  c10::intrusive_ptr<Store> store_;
  std::string secret_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> make_sealed_store(c10::intrusive_ptr<c10d::Store> store, std::string secret) {
  return c10::make_intrusive<SealedStore>(std::move(store), std::move(secret));
}

}  // namespace tandem
