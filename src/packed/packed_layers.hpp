#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <hortator/quantise.hpp>
#include <optional>
#include <string>
#include <vector>

#include "packed/formats/layout.hpp"

/// The layers of a model whose weights are packed.
namespace hortator::packed {

struct PackableLayer {
  std::string name = {};
  at::Tensor weight = {};
  PackedLayout layout = {};
  bool is_transposed = false;        ///< the layer has the matrix as [inputs, outputs]
  at::ScalarType type = at::kFloat;  ///< of the weight's values, which embedding() looks up
  std::optional<at::ScalarType> compute_type = {};

  std::string weight_name() const { return name + ".weight"; }
};

/// The layers that options choose. Throws UsageError if there are none, or if one of them cannot be packed.
std::vector<PackableLayer> packable_layers(const torch::nn::Module& module, const QuantiseOptions& options);

/// The layer as matrix [outputs, inputs] of float32.
at::Tensor values_of(const PackableLayer& layer, const at::Tensor& weight);

/// The parameter becomes an array of the packed size, without memory and frozen, and its operators compute with it.
void become_packed(const PackableLayer& layer);

/// Packs the parameter's values. Throws UsageError if they are not finite.
void pack_in_place(const PackableLayer& layer);

/// What a parameter's memory holds; nothing if it is not packed.
std::optional<PackableLayer> packed_layer_of(const at::Tensor& weight);

}  // namespace hortator::packed
