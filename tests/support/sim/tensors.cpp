#include "support/sim/tensors.hpp"

#include <ATen/EmptyTensor.h>
#include <c10/core/DeviceGuard.h>

#include <cstring>

#include "support/sim/current.hpp"
#include "support/sim/memory.hpp"
#include "support/sim/operators/plain_scope.hpp"
#include "support/sim/state.hpp"

namespace hortator::sim {

at::Tensor make_tensor(const TensorShape& shape, int device) {
  const CurrentDevice scope(device);
  return at::detail::empty_strided_generic(shape.sizes, shape.strides, &device_allocator(), far_keys, shape.type);
}

at::Tensor make_view(const at::Tensor& base, const TensorShape& shape) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(base.storage()),
                                                       base.key_set(), c10::scalarTypeToTypeMeta(shape.type));
  view.unsafeGetTensorImpl()->set_storage_offset(shape.offset + base.storage_offset());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(shape.sizes, shape.strides);
  return view;
}

void resize_tensor(const at::Tensor& tensor, at::IntArrayRef sizes) {
  auto* const impl = tensor.unsafeGetTensorImpl();
  const auto bytes = at::detail::computeStorageNbytesContiguous(sizes, tensor.element_size(),
                                                                static_cast<std::size_t>(tensor.storage_offset()));
  auto& storage = *impl->unsafe_storage().unsafeGetStorageImpl();
  if (const auto kept = storage.nbytes(); bytes > kept) {
    const CurrentDevice scope(tensor.device().index());
    auto next = device_allocator().allocate(bytes);
    if (kept > 0) {
      auto* const from = near(storage.mutable_data());
      auto* const to = near(next.get());
      submit(current_stream(tensor.device().index()),
             {.name = "resize_",
              .uses = {{block_at(from), {0, kept}, false}, {block_at(to), {0, kept}, true}},
              .run = [from, to, kept](const Dice&) { std::memcpy(to, from, kept); }});
    }
    storage.set_data_ptr_noswap(std::move(next));
    storage.set_nbytes(bytes);
  }
  impl->set_sizes_contiguous(sizes);
}

}  // namespace hortator::sim
