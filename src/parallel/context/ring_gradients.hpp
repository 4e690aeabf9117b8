#pragma once

#include "parallel/context/ring.hpp"

namespace hortator::parallel {

/// Gradients of one rank's operands, in the type of sums.
struct RingGradients {
  at::Tensor queries = {}, keys = {}, values = {};
  at::Tensor mask = {};  ///< undefined if it is not wanted
};

/// The gradients of this rank's operands, where `means` is what the forward pass has computed, and `output_gradient`
/// that of the output. Keys and values go round once, and the sums of their gradients follow one step behind, so that
/// they travel while the next addends are computed. An error of one rank, memory that runs out included, is thrown by
/// all. @collective
RingGradients gradients_in_ring(const RingOperands& mine, const AttentionMeans& means,
                                const at::Tensor& output_gradient, bool learns_mask, const Ring& ring);

}  // namespace hortator::parallel
