#include "step/recompute/frozen_weights.hpp"

#include <map>
#include <mutex>

namespace hortator::step {
namespace {

/// By address. While the pointer has not expired, no other storage has the address.
class NotedStorages {
 public:
  static NotedStorages& instance() {
    static auto* storages = new NotedStorages;  // never destroyed, since static tensors may outlive it
    return *storages;
  }

  void add(const at::Tensor& tensor) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
    known_.insert_or_assign(address_of(tensor), tensor.storage().getWeakStorageImpl());
  }
  bool contains(const at::Tensor& tensor) const {
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(address_of(tensor));
    return found != known_.end() && !found->second.expired();
  }

 private:
  static const void* address_of(const at::Tensor& tensor) { return tensor.storage().unsafeGetStorageImpl(); }

  mutable std::mutex mutex_;
  std::map<const void*, c10::weak_intrusive_ptr<c10::StorageImpl>> known_;
};

}  // namespace

void note_frozen_weights(const std::vector<at::Tensor>& parameters) {
  for (const auto& parameter : parameters) {
    if (!parameter.requires_grad() && parameter.has_storage()) NotedStorages::instance().add(parameter);
  }
}

bool is_frozen_weight(const at::Tensor& tensor) {
  return tensor.has_storage() && NotedStorages::instance().contains(tensor);
}

}  // namespace hortator::step
