#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

/// Attention of queries to one block of the keys, so that the results of several blocks can be merged. Computes in
/// float32, or float64 if the operands are. Local, without autograd.
namespace hortator::parallel {

/// Queries [.., heads, queries, width] and a block of keys and values. The heads of keys may be fewer than those of
/// queries, which then share them.
struct AttentionBlock {
  at::Tensor queries = {}, keys = {}, values = {};
  /// Boolean or added to the scores; its last two dimensions are those of queries and keys, or 1.
  std::optional<at::Tensor> mask = {};
  double scale = 1;
};

/// The means of the values, and the logarithms of the sums of the exponential scores by which they were weighted.
/// Queries that see no key have zeros and minus infinity.
struct AttentionMeans {
  at::Tensor output = {};     ///< [.., heads, queries, value width]
  at::Tensor logsumexp = {};  ///< [.., heads, queries, 1]
};
AttentionMeans attend(const AttentionBlock& block);

/// Makes `sum`, in place, the result of its keys and those of `more`.
void merge(const AttentionMeans& sum, const AttentionMeans& more);

/// What the gradients of a block need of the result of all blocks.
struct OutputGradient {
  at::Tensor gradient = {};   ///< of the output
  at::Tensor logsumexp = {};  ///< AttentionMeans::logsumexp of all blocks
  at::Tensor mean = {};       ///< the sum of gradient x output along the width, [.., heads, queries, 1]
};

struct BlockGradients {
  at::Tensor queries = {}, keys = {}, values = {};
  at::Tensor scores = {};  ///< [.., heads, queries, keys]
};
/// A block's addends to the gradients.
BlockGradients gradients_of(const AttentionBlock& block, const OutputGradient& arrived);

}  // namespace hortator::parallel
