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
/// torch::nn::Sequential containers, and of all RecomputableLayers, within `model` keep only their input for backward.
/// Returns how many were changed. Names of parameters, checkpoints and gradients stay bitwise the same.
///
/// Other modules call their layers directly, so that these cannot be reached: such a module uses recompute() in its
/// forward, and may be a RecomputableLayers as the models of hortator::models are, which have their layers' class names
/// in transformers as well ("LlamaDecoderLayer"). Those recompute all of their layers or none. A layer of a Sequential
/// takes one tensor and returns one. Throws UsageError if no layer matches. Call it before or after prepare(), but
/// clone modules before it: the Sequential then hands out its layers only as registered children (children(),
/// named_modules()), not by ptr() or at<T>().
template <Module M>
std::int64_t recompute_layers(M& model, const RecomputeLayersOptions& options) {
  return detail::recompute_layers(detail::module_of(model), options);
}

}  // namespace hortator
