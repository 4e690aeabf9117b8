#include "parallel/data_parallel/copy_gradient.hpp"

#include <ATen/Parallel.h>

#include "machine/memory/stream_copy.hpp"
#include "machine/shapes/counted_memory.hpp"

namespace hortator::parallel {
namespace {

constexpr std::size_t large_bytes = std::size_t{1}
                                    << 20;  // smaller ones may still be in the cache when they are added up

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

}  // namespace

void copy_gradient(const at::Tensor& target, const at::Tensor& gradient) {
  // stream_copy uses one thread; LibTorch is faster where a rank has many.
  const bool is_bytewise = at::get_num_threads() <= 2 && is_plain(target) && is_plain(gradient) &&
                           target.scalar_type() == gradient.scalar_type() && target.numel() == gradient.numel() &&
                           target.nbytes() >= large_bytes && !machine::reserves_memory();
  if (is_bytewise) return machine::stream_copy(target.mutable_data_ptr(), gradient.const_data_ptr(), target.nbytes());
  target.copy_(gradient.detach());
}

}  // namespace hortator::parallel
