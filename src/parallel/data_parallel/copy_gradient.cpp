#include "parallel/data_parallel/copy_gradient.hpp"

#include <ATen/Parallel.h>

#include "machine/memory/stream_copy.hpp"

namespace hortator::parallel {
namespace {

constexpr std::size_t large_bytes = std::size_t{1} << 20;  // less may still be in the cache when it is summed

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

}  // namespace

void copy_gradient(const at::Tensor& place, const at::Tensor& gradient) {
  // One thread copies; LibTorch's many are faster than that where a rank has them.
  const bool is_bytewise = at::get_num_threads() <= 2 && is_plain(place) && is_plain(gradient) &&
                           place.scalar_type() == gradient.scalar_type() && place.numel() == gradient.numel() &&
                           place.nbytes() >= large_bytes;
  if (is_bytewise) return machine::stream_copy(place.mutable_data_ptr(), gradient.const_data_ptr(), place.nbytes());
  place.copy_(gradient.detach());
}

}  // namespace hortator::parallel
