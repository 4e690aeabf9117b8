#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "comm/communicator.hpp"
#include "parallel/context/sequence_layout.hpp"

/// Tensors whose dimension `dim` runs along a sequence that `layout` divides over the ranks of `over`. Differentiable;
/// each rank uses what it gets in its own way, so that gradients are added.
namespace hortator::parallel {

/// The tokens of `rank` of a whole sequence. Local.
at::Tensor part_of_sequence(const at::Tensor& whole, std::int64_t dim, const SequenceLayout& layout, int rank);

/// The whole sequence, in its order, from the ranks' parts. @collective
at::Tensor gather_sequence(const at::Tensor& part, std::int64_t dim, const SequenceLayout& layout,
                           comm::Communicator& over);

/// This rank's part of the sum of the ranks' whole sequences. @collective
at::Tensor reduce_sequence(const at::Tensor& whole, std::int64_t dim, const SequenceLayout& layout,
                           comm::Communicator& over);

/// Picks from each row the token at its position in the whole sequence: [batch, width], from the ranks' [batch, own,
/// width]. The gradient is that of the mean of the ranks' losses. @collective
at::Tensor tokens_at(const at::Tensor& states, const at::Tensor& positions, const SequenceLayout& layout,
                     comm::Communicator& over);

/// The maximum over the ranks, without a gradient. @collective
at::Tensor max_over(const at::Tensor& own, comm::Communicator& over);

}  // namespace hortator::parallel
