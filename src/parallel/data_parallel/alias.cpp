#include "parallel/data_parallel/alias.hpp"

#include <ATen/ops/empty.h>

namespace hortator::parallel {

at::Tensor alias(const at::Tensor& memory, std::int64_t offset, const at::Tensor& like, at::ScalarType type) {
  auto result = at::empty({0}, memory.options().dtype(type));
  const auto strides = like.is_non_overlapping_and_dense()
                           ? like.strides().vec()
                           : at::empty(like.sizes(), like.options().device(at::kMeta)).strides().vec();
  result.set_(memory.storage(), offset, like.sizes(), strides);
  return result;
}

}  // namespace hortator::parallel
