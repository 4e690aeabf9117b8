#include "models/layers/plain_tensor.hpp"

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

namespace hortator::models {

bool is_plain(const at::Tensor& x) {
  if (c10::GradMode::is_enabled() || at::autocast::is_autocast_enabled(at::kCPU)) return false;
  // keys that every tensor has
  constexpr auto usual =
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::DispatchKeySet(c10::DispatchKey::AutocastCPU);
  return x.key_set() - usual == c10::DispatchKeySet(c10::DispatchKey::CPU) && x.scalar_type() == at::kFloat &&
         x.is_contiguous();
}

bool is_plain_and_small(const at::Tensor& x) {
  constexpr std::int64_t small = 16 * 1024;
  return x.numel() <= small && is_plain(x);
}

}  // namespace hortator::models
