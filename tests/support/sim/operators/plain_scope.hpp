#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include "support/sim/streams.hpp"

namespace hortator::sim {

constexpr c10::DispatchKeySet cpu_keys(c10::DispatchKey::CPU);
constexpr c10::DispatchKeySet far_keys(c10::DispatchKey::PrivateUse1);

/// While it lives, operators of this thread are the CPU's kernels only: no gradients, no autocast, no dispatch key that
/// the program has set, and no callback that watches operators sees them.
class PlainScope {
  c10::impl::ForceDispatchKeyGuard keys_{
      c10::DispatchKeySet(c10::DispatchKey::BackendSelect),
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset};
  c10::AutoGradMode no_grad_{false};
  at::DisableRecordFunctionGuard unseen_;
};

}  // namespace hortator::sim
