#include "paging/interception/paged_key.hpp"

#include <c10/core/TensorImpl.h>

namespace hortator::paging {
namespace {

// A tensor's keys have no setter, but a derived class may name the member.
struct Keys : c10::TensorImpl {
  static void set(c10::TensorImpl* tensor, c10::DispatchKeySet keys) { tensor->*(&Keys::key_set_) = keys; }
};

}  // namespace

bool carries_key(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->key_set().has(paged_key); }

void add_key(const at::Tensor& tensor) {
  auto* impl = tensor.unsafeGetTensorImpl();
  Keys::set(impl, impl->key_set().add(paged_key));
}

void remove_key(const at::Tensor& tensor) {
  auto* impl = tensor.unsafeGetTensorImpl();
  Keys::set(impl, impl->key_set().remove(paged_key));
}

}  // namespace hortator::paging
