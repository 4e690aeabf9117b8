#include "paging/deferred/late_values.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include "interception/claimed_operators.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/storage_memory.hpp"
#include "interception/weight_operators.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "paging/deferred/deferred_provider.hpp"
#include "paging/deferred/plainly.hpp"

namespace hortator::paging {
namespace {

using Fill = std::function<void(const at::Tensor&)>;

/// One tensor that `fill` gives its values.
class LateValues final : public DeferredProvider {
 public:
  LateValues(const at::Tensor& tensor, Fill fill)
      : storage_(tensor.storage()),
        tensor_(tensor.getIntrusivePtr()),
        alias_(alias_of(tensor)),
        fill_(std::move(fill)) {}

  void enter(int /*number*/, interception::Access /*access*/) override {
    const std::lock_guard lock(mutex_);
    make();
  }
  void hand_over(int /*number*/, interception::Content content) override {
    const std::lock_guard lock(mutex_);
    content == interception::Content::keep ? make() : release();
  }

 private:
  void make() {
    if (!storage_) return;
    const Plainly plainly;
    interception::own_memory(storage_, interception::new_memory(storage_.nbytes()));
    try {
      fill_(alias_);
    } catch (...) {
      interception::take_memory(storage_, not_yet);
      throw;
    }
    release();
  }

  void release() {
    if (!storage_) return;
    if (const auto tensor = tensor_.lock()) interception::remove_key_of_claim(at::Tensor(tensor));
    alias_ = at::Tensor();
    fill_ = nullptr;
    interception::disclaim(std::exchange(storage_, at::Storage()));
  }

  std::mutex mutex_;
  at::Storage storage_;  ///< empty if it has its values, or is dropped
  c10::weak_intrusive_ptr<c10::TensorImpl> tensor_;
  at::Tensor alias_;
  Fill fill_;
};

}  // namespace

void fill_later(const at::Tensor& tensor, Fill fill) {
  give_memory(tensor);
  if (tensor.storage().nbytes() < small_bytes) {
    const Plainly plainly;
    return fill(alias_of(tensor));
  }
  interception::start_interception();
  interception::take_memory(tensor.storage(), not_yet);
  const auto values = std::make_shared<LateValues>(tensor, std::move(fill));
  interception::claim(tensor.storage(), {.provider = values.get(), .keeps_alive = values});
  interception::add_key(tensor);
}

void settle_to_receive(const at::Tensor& tensor) {
  const bool is_late = dynamic_cast<const LateValues*>(interception::claim_of(tensor).provider) != nullptr;
  is_late ? give_memory(tensor) : settle(tensor);
}

}  // namespace hortator::paging
