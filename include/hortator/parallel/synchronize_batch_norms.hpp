#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <string>
#include <vector>

namespace hortator {

namespace detail {
HORTATOR_API std::int64_t synchronize_batch_norms(torch::nn::Module& module);
HORTATOR_API std::vector<std::string> unsynchronized_batch_norms(const torch::nn::Module& module);
}  // namespace detail

/// Makes all torch::nn::BatchNorm1d, 2d and 3d layers within `model` compute in training as SyncBatchNorm1d, 2d and 3d
/// do, over the batches of all ranks together, without a change to the model's code. It is PyTorch's
/// SyncBatchNorm.convert_sync_batchnorm; call it on all ranks before prepare(). Returns how many layers there are.
///
/// The modules stay what they are: parameters, buffers, their names and the output of evaluation are unchanged. Their
/// operator, aten::batch_norm, is intercepted. Before a layer calls it, LibTorch checks the input on its own, so that
/// each rank needs more than one value a channel, or none (SyncBatchNorm can have one). A clone() is a new module, with
/// plain layers: call it for that as well.
template <Module M>
std::int64_t synchronize_batch_norms(M& model) {
  return detail::synchronize_batch_norms(detail::module_of(model));
}

/// The names of the BatchNorm1d, 2d and 3d layers within `model` for which synchronize_batch_norms() was not called:
/// in training, each rank normalises with its own batch. A model that is such a layer itself has the name "".
template <Module M>
std::vector<std::string> unsynchronized_batch_norms(const M& model) {
  return detail::unsynchronized_batch_norms(detail::module_of(model));
}

}  // namespace hortator
