#include "support/sim/near.hpp"

#include <ATen/core/TensorBase.h>

#include <span>

#include "support/sim/memory.hpp"

namespace hortator::sim {

at::Tensor near_view(const at::Tensor& tensor) {
  const auto& memory = tensor.storage();
  auto* const begin = near(const_cast<void*>(memory.data()));  // NOLINT
  c10::Storage storage(c10::Storage::use_byte_size_t(), memory.nbytes(), at::DataPtr(begin, at::kCPU), nullptr, false);
  auto view = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                       tensor.dtype());
  view.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return view;
}

void add_use(std::vector<BlockUse>& uses, const at::Tensor& tensor, bool writes) {
  if (tensor.numel() == 0) return;
  const auto* const first = near(const_cast<void*>(tensor.storage().data()));  // NOLINT
  auto* const block = block_at(first);
  if (block == nullptr) return;
  std::int64_t elements = 1;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) elements += (tensor.size(i) - 1) * tensor.stride(i);
  const auto element = static_cast<std::size_t>(tensor.element_size());
  const auto begin =
      static_cast<std::size_t>(first - block->memory) + static_cast<std::size_t>(tensor.storage_offset()) * element;
  const std::span sizes(tensor.sizes().data(), tensor.sizes().size());
  const std::span strides(tensor.strides().data(), tensor.strides().size());
  const auto pattern = machine::pattern_of(sizes, strides, element);
  uses.push_back({block, {begin, begin + static_cast<std::size_t>(elements) * element, pattern}, writes});
}

}  // namespace hortator::sim
