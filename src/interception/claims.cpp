#include "interception/claims.hpp"

#include <hortator/error.hpp>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace hortator::interception {
namespace {

struct Entry {
  at::Storage storage;
  Claim claim;
};

struct Table {
  std::mutex mutex;
  std::unordered_map<const c10::StorageImpl*, Entry> entries;
};

// Never destroyed: tensors in other static objects may outlive it.
Table& table() {
  static auto& table = *new Table;
  return table;
}

Claim find(const c10::StorageImpl* storage) {
  auto& [mutex, entries] = table();
  const std::lock_guard lock(mutex);
  const auto found = entries.find(storage);
  return found != entries.end() ? found->second.claim : Claim{};
}

}  // namespace

void claim(const at::Storage& storage, Claim claim) {
  auto& [mutex, entries] = table();
  const std::lock_guard lock(mutex);
  const bool is_new = entries.try_emplace(storage.unsafeGetStorageImpl(), storage, std::move(claim)).second;
  if (!is_new) {
    throw UsageError({.what = "A parameter is already offloaded or sharded",
                      .hint = "end the earlier offloading of the module first"});
  }
}

void disclaim(const at::Storage& storage) noexcept {
  auto& [mutex, entries] = table();
  std::unordered_map<const c10::StorageImpl*, Entry>::node_type
      released;  // destroyed without the lock: it may own a lot
  const std::lock_guard lock(mutex);
  released = entries.extract(storage.unsafeGetStorageImpl());
}

Claim claim_of(const at::Storage& storage) { return find(storage.unsafeGetStorageImpl()); }

Claim claim_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return {};
  return find(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

}  // namespace hortator::interception
