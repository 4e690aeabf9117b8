#include "parallel/local_sgd/sparse_codes.hpp"

#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

namespace hortator::parallel {
namespace {

constexpr int place_bits = 12, large_bit = 12, sign_bit = 13;

/// The mean of the marked numbers of each chunk; 0 where none is marked.
at::Tensor mean_of(const at::Tensor& sizes, const at::Tensor& marks) {
  const auto marked = marks.to(sizes.scalar_type());
  return (sizes * marked).sum(1) / marked.sum(1).clamp_min(1);
}

}  // namespace

SparseCodes pack_sparse(const at::Tensor& values) {
  const auto chunks = values.view({-1, sparse_chunk});
  const auto [sizes, places] = chunks.abs().topk(sparse_kept, 1);
  const auto is_large = sizes > sizes.mean(1, /*keepdim=*/true);
  const auto is_negative = chunks.gather(1, places) < 0;
  const auto entries = places + is_large.to(at::kLong) * (1 << large_bit) + is_negative.to(at::kLong) * (1 << sign_bit);
  return {.entries = entries.to(at::kShort),
          .levels = at::stack({mean_of(sizes, is_large.logical_not()), mean_of(sizes, is_large)}, 1)};
}

void add_sparse(const SparseCodes& codes, const at::Tensor& values) {
  const auto entries = codes.entries.to(at::kLong);
  const auto places = at::bitwise_and(entries, (1 << place_bits) - 1);
  const auto is_large = at::bitwise_and(entries, 1 << large_bit).to(at::kBool);
  const auto is_negative = at::bitwise_and(entries, 1 << sign_bit).to(at::kBool);
  const auto sizes = at::where(is_large, codes.levels.narrow(1, 1, 1), codes.levels.narrow(1, 0, 1));
  values.view({-1, sparse_chunk}).scatter_add_(1, places, at::where(is_negative, -sizes, sizes));
}

}  // namespace hortator::parallel
