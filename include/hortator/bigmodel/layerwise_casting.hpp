#pragma once

#include <c10/core/ScalarType.h>
#include <torch/nn/module.h>

#include <hortator/bigmodel/offload.hpp>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <string>
#include <vector>

namespace hortator {

/// Options of attach_layerwise_casting_hooks().
struct LayerwiseCastingOptions {
  std::vector<std::string> keep_resident = {};  ///< parameters, or modules with all of theirs, that keep their type
};

namespace detail {
[[nodiscard]] HORTATOR_API Offload cast_layerwise(const torch::nn::Module& module, c10::ScalarType storage_type,
                                                  const LayerwiseCastingOptions& options);
}  // namespace detail

/// Keeps the weights of a model in a smaller type than that in which it computes, for example bf16 weights as
/// at::kFloat8_e4m3fn: an operator that uses one gets it converted to the parameter's own type, in memory that the next
/// weights use again. Weights have two or more dimensions; vectors (biases, norms) and buffers stay as they are.
///
///     net->to(at::kBFloat16);
///     auto casting = hortator::attach_layerwise_casting_hooks(net, at::kFloat8_e4m3fn);
///
/// For inference, and for frozen weights in training: what is written to a weight is rounded. A number too large for
/// the smaller type is an error that names the parameter. The result's end gives the weights memory of their own type
/// again, with their rounded values.
template <Module M>
[[nodiscard]] Offload attach_layerwise_casting_hooks(M& model, c10::ScalarType storage_type,
                                                     const LayerwiseCastingOptions& options = {}) {
  return detail::cast_layerwise(detail::module_of(model), storage_type, options);
}

}  // namespace hortator
