#include "parallel/context/block_attention.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/matmul.h>

#include <limits>

namespace hortator::parallel {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

at::Tensor computable(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

/// Keys, or values, for each head of the queries.
at::Tensor for_heads(const at::Tensor& shared, const at::Tensor& queries) {
  const auto queries_of_key = queries.dim() > 2 ? queries.size(-3) / shared.size(-3) : 1;
  return computable(queries_of_key == 1 ? shared : shared.repeat_interleave(queries_of_key, -3));
}

/// The sum over the heads that share a key.
at::Tensor of_shared(const at::Tensor& gradient, const at::Tensor& shared) {
  if (gradient.dim() < 3 || gradient.size(-3) == shared.size(-3)) return gradient;
  return gradient.unflatten(-3, {shared.size(-3), -1}).sum(-3);
}

at::Tensor scores_of(const AttentionBlock& block, const at::Tensor& queries, const at::Tensor& keys) {
  auto scores = at::matmul(queries, keys.transpose(-2, -1)).mul_(block.scale);
  if (!block.mask) return scores;
  if (block.mask->scalar_type() == at::kBool) return scores.masked_fill_(block.mask->logical_not(), minus_infinity);
  return scores.add_(block.mask->to(scores.scalar_type()));
}

/// What to subtract from scores: 0 where no key was seen, so that weights are 0 and not NaN.
at::Tensor base_of(const at::Tensor& logsumexp) { return logsumexp.masked_fill(logsumexp.eq(minus_infinity), 0); }

}  // namespace

AttentionMeans attend(const AttentionBlock& block) {
  const auto queries = computable(block.queries);
  auto scores = scores_of(block, queries, for_heads(block.keys, queries));
  const auto logsumexp = scores.logsumexp(-1, /*keepdim=*/true);
  const auto weights = scores.sub_(base_of(logsumexp)).exp_();
  return {.output = at::matmul(weights, for_heads(block.values, queries)), .logsumexp = logsumexp};
}

void merge(const AttentionMeans& sum, const AttentionMeans& more) {
  const auto both = at::logaddexp(sum.logsumexp, more.logsumexp);
  const auto base = base_of(both);
  sum.output.mul_((sum.logsumexp - base).exp()).add_(more.output * (more.logsumexp - base).exp());
  sum.logsumexp.copy_(both);
}

BlockGradients gradients_of(const AttentionBlock& block, const OutputGradient& arrived) {
  const auto queries = computable(block.queries), gradient = computable(arrived.gradient);
  const auto keys = for_heads(block.keys, queries), values = for_heads(block.values, queries);
  const auto weights = scores_of(block, queries, keys).sub_(base_of(arrived.logsumexp)).exp_();
  const auto scores = at::matmul(gradient, values.transpose(-2, -1)).sub_(arrived.mean).mul_(weights);
  return {.queries = at::matmul(scores, keys).mul_(block.scale),
          .keys = of_shared(at::matmul(scores.transpose(-2, -1), queries).mul_(block.scale), block.keys),
          .values = of_shared(at::matmul(weights.transpose(-2, -1), gradient), block.values),
          .scores = scores};
}

}  // namespace hortator::parallel
