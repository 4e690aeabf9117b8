#include "interception/dispatch_keys.hpp"

#include <c10/core/TensorImpl.h>

namespace hortator::interception {
namespace {

// A tensor's keys have no setter, but a derived class may name the member.
struct Keys : c10::TensorImpl {
  static void set(c10::TensorImpl* tensor, c10::DispatchKeySet keys) { tensor->*(&Keys::key_set_) = keys; }
};

bool has(const at::Tensor& tensor, c10::DispatchKey key) { return tensor.unsafeGetTensorImpl()->key_set().has(key); }

void add(const at::Tensor& tensor, c10::DispatchKey key) {
  auto* impl = tensor.unsafeGetTensorImpl();
  Keys::set(impl, impl->key_set().add(key));
}

void remove(const at::Tensor& tensor, c10::DispatchKey key) {
  auto* impl = tensor.unsafeGetTensorImpl();
  Keys::set(impl, impl->key_set().remove(key));
}

}  // namespace

bool carries_key(const at::Tensor& tensor) { return has(tensor, paged_key); }
void add_key(const at::Tensor& tensor) { add(tensor, paged_key); }
void remove_key(const at::Tensor& tensor) { remove(tensor, paged_key); }

bool carries_divided_key(const at::Tensor& tensor) { return has(tensor, divided_key); }
void add_divided_key(const at::Tensor& tensor) { add(tensor, divided_key); }
void remove_divided_key(const at::Tensor& tensor) { remove(tensor, divided_key); }

}  // namespace hortator::interception
