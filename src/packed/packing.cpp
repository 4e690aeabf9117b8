// Rounds weights to 8 and 4 bits.
#include "packed/packing.hpp"

#include <ATen/ops/empty.h>

namespace hortator::packed {

at::Tensor pack(const at::Tensor& weight, const PackedLayout& layout) {
  auto bytes = at::empty({layout.bytes(), 1}, weight.options().dtype(at::kByte).requires_grad(false));
  layout.numbers().pack(layout, weight.const_data_ptr<float>(), bytes.mutable_data_ptr<std::uint8_t>());
  return bytes;
}

}  // namespace hortator::packed
