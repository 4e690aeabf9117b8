#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <string>
#include <vector>

namespace hortator {

/// Which layers recompute_layers() changes. A layer that matches one entry is changed.
struct RecomputeLayersOptions {
  std::vector<std::string> classes = {};  ///< names of classes, with or without namespace and "Impl": "EncoderLayer"
  /// Names within the model; a star stands for any characters, points included: "encoder.layers.*".
  std::vector<std::string> names = {};
};

namespace detail {
HORTATOR_API std::int64_t recompute_layers(torch::nn::Module& module, const RecomputeLayersOptions& options);
}

/// Gradient checkpointing (see recompute()) without changing the model's code: from now on the matching layers of all
/// torch::nn::Sequential containers within `model` keep only their input for backward. Returns how many were changed.
/// Names of parameters, checkpoints and gradients stay bitwise the same.
///
/// Only layers of a Sequential can be reached, since other modules call their layers directly; these use recompute() in
/// their forward. A layer takes one tensor and returns one. Throws UsageError if no layer matches. Call it before or
/// after prepare(), but clone modules before it: the Sequential then hands out its layers only as registered children
/// (children(), named_modules()), not by ptr() or at<T>().
template <Module M>
std::int64_t recompute_layers(M& model, const RecomputeLayersOptions& options) {
  return detail::recompute_layers(detail::module_of(model), options);
}

}  // namespace hortator
