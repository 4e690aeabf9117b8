#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "interception/dispatch_keys.hpp"

namespace hortator::paging {

/// While it lives, operators are neither intercepted nor recorded, and make no graph.
struct Plainly {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::DispatchKeySet(interception::paged_key) |
                                           c10::DispatchKeySet(interception::recording_key)};
  at::NoGradGuard no_grad{};
};

/// While it lives, operators are not recorded, whatever this thread constructs.
struct Unrecorded {
  c10::impl::ExcludeDispatchKeyGuard guard{interception::recording_key};
};

/// A separate tensor: LibTorch copies a tensor that has other references when it becomes a parameter.
inline at::Tensor alias_of(const at::Tensor& tensor) {
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
}

}  // namespace hortator::paging
