#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/parallel/axis.hpp>
#include <vector>

/// Collectives on tensors with gradients, for authors of layers. They work over the ranks that differ only along an
/// axis of the mesh (AcceleratorOptions::parallel), in forward, and again in backward and in its derivatives. All of
/// them are @collective over these ranks (the first use of an axis is over all ranks, unless
/// AcceleratorOptions::parallel sets tensor, context or pipeline). The ranks pass tensors of the same shape and type
/// unless a function says otherwise. Either all of these tensors need a gradient, or none does. Without a gradient to
/// compute a function costs what the collective costs.
///
///     // The second half of a layer whose input features are divided over the axis tensor:
///     auto y = hortator::parallel::all_reduce(at::linear(x, weight), Axis::tensor, ResultUse::same);
namespace hortator::parallel {

/// What the ranks do with a result that is the same on all of them. It decides the gradient.
enum class ResultUse {
  /// Each rank continues with computations of its own, and the loss is the sum of the ranks' losses: the gradients of
  /// all ranks are added.
  differs,
  /// All ranks continue with the same computations, up to one and the same loss: each rank has the whole gradient.
  same
};

/// The sum over the ranks.
HORTATOR_API at::Tensor all_reduce(const at::Tensor& tensor, Axis axis, ResultUse use = ResultUse::differs);

/// The ranks' tensors, joined along dimension `dim` in rank order.
HORTATOR_API at::Tensor all_gather(const at::Tensor& tensor, Axis axis, std::int64_t dim = 0,
                                   ResultUse use = ResultUse::differs);

/// This rank's part of the sum over the ranks, which is cut into equal parts along dimension `dim`.
HORTATOR_API at::Tensor reduce_scatter(const at::Tensor& tensor, Axis axis, std::int64_t dim = 0);

/// Cuts `tensor` into equal parts along `cut`, one for each rank, and joins what the ranks send to this one along
/// `join`.
HORTATOR_API at::Tensor all_to_all(const at::Tensor& tensor, Axis axis, std::int64_t cut, std::int64_t join);
/// Sends the next `rows_to[r]` rows of `tensor` to each rank r, and returns the rows that the ranks send to this one:
/// `rows_from[r]` of rank r. Ranks may have different numbers of rows. If sizes do not fit, all ranks throw.
HORTATOR_API at::Tensor all_to_all(const at::Tensor& tensor, Axis axis, const std::vector<std::int64_t>& rows_to,
                                   const std::vector<std::int64_t>& rows_from);

/// The tensor of the rank at position `root` of the axis.
HORTATOR_API at::Tensor broadcast(const at::Tensor& tensor, Axis axis, int root = 0,
                                  ResultUse use = ResultUse::differs);

/// The same tensor, which is equal on all ranks and which each rank uses in its own way: gradients are added. The
/// counterpart of all_reduce with ResultUse::same. Does not communicate in forward.
HORTATOR_API at::Tensor enter(const at::Tensor& tensor, Axis axis);

/// This rank's part of a tensor that is equal on all ranks, cut into equal parts along dimension `dim`. The counterpart
/// of all_gather with ResultUse::same. Does not communicate in forward.
HORTATOR_API at::Tensor own_part(const at::Tensor& tensor, Axis axis, std::int64_t dim = 0);

}  // namespace hortator::parallel
