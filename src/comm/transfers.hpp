#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"

/// Verbs that every back end gets from Communicator's own. All of them are @collective over the communicator, and
/// throw on all ranks where sizes do not fit; where ranks must pass the same shape, as in every collective, and one
/// passes another, that holds for back ends that find mismatches (Traits::finds_mismatch).
namespace hortator::comm {

/// Sends `tensor` from rank `from` to rank `to`, which receives it in its `tensor`; that of other ranks is not used.
Work send(Communicator& over, const at::Tensor& tensor, int from, int to);

/// Sends to each rank r the next `rows_to[r]` rows of `input`, which is cut along dimension 0, and writes what rank r
/// sends to this one to the next `rows_from[r]` rows of `output`.
Work all_to_all(Communicator& over, const at::Tensor& output, const at::Tensor& input,
                const std::vector<std::int64_t>& rows_to, const std::vector<std::int64_t>& rows_from);
/// The same with equal parts along dimension 0.
Work all_to_all(Communicator& over, const at::Tensor& output, const at::Tensor& input);

/// What each rank sends to this one in an all_to_all in which this rank sends `rows_to`.
std::vector<std::int64_t> rows_from(Communicator& over, const std::vector<std::int64_t>& rows_to, c10::Device device);

/// The tensors of all ranks, joined along dimension `dim` in rank order. They have the same shape.
at::Tensor gather_along(Communicator& over, const at::Tensor& tensor, std::int64_t dim);
/// The same where rank r has `sizes[r]` along `dim`. Ranks pass the same `sizes`.
at::Tensor gather_along(Communicator& over, const at::Tensor& tensor, std::int64_t dim,
                        const std::vector<std::int64_t>& sizes);

/// This rank's part of the reduction of all ranks' tensors, cut into equal parts along dimension `dim`.
at::Tensor reduce_scatter_along(Communicator& over, const at::Tensor& tensor, std::int64_t dim, ReduceOp op);

/// Writes this rank's part of rank `root`'s `whole` to `part`: rank r's is the r-th along dimension `dim`, of the size
/// that its `part` has there. `whole` is used on the root only, which passes all ranks' `sizes` along `dim`.
Work scatter_along(Communicator& over, const at::Tensor& part, const at::Tensor& whole, std::int64_t dim,
                   const std::vector<std::int64_t>& sizes, int root);

}  // namespace hortator::comm
