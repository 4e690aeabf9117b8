#include "parallel/zero/absent_arrays.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/TensorImpl.h>

#include "interception/dispatch_keys.hpp"

namespace hortator::parallel {

std::vector<paging::NamedTensor> absent_arrays(const std::vector<ArraySpec>& specs, c10::Device device) {
  std::vector<paging::NamedTensor> arrays;
  for (const auto& spec : specs) {
    auto array = at::empty({0}, at::TensorOptions().dtype(spec.type).device(device));
    auto& storage = *array.storage().unsafeGetStorageImpl();
    storage.set_nbytes(static_cast<std::size_t>(spec.elements) * c10::elementSize(spec.type));
    array.unsafeGetTensorImpl()->set_sizes_contiguous({spec.elements});
    arrays.push_back({.name = spec.name, .tensor = std::move(array)});
  }
  return arrays;
}

std::vector<paging::Page> one_page_each(const std::vector<paging::NamedTensor>& arrays) {
  std::vector<paging::Page> pages;
  for (const auto& array : arrays) {
    const auto number = static_cast<int>(pages.size());
    const auto bytes = array.tensor.storage().nbytes();
    pages.push_back({.number = number, .positions = {{.storage = number, .bytes = bytes}}, .bytes = bytes});
  }
  return pages;
}

at::Tensor range_of(const at::Tensor& memory, std::int64_t begin, at::IntArrayRef sizes) {
  // By hand: set_() asks for the storage's pointer.
  auto range =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(memory.storage()), memory.key_set(), memory.dtype());
  auto* impl = range.unsafeGetTensorImpl();
  impl->set_storage_offset(memory.storage_offset() + begin);
  impl->set_sizes_contiguous(sizes);
  return range;
}

at::Tensor held_memory(const at::Tensor& array) {
  auto memory = range_of(array, 0, array.sizes());
  interception::remove_key(memory);
  return memory;
}

}  // namespace hortator::parallel
