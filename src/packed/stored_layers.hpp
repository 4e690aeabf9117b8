#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/bigmodel/weights.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "packed/packed_layers.hpp"
#include "weights/weight_source.hpp"

/// Packed weights in files. nf4 and int8 have the tensors of bitsandbytes' own files, beside WEIGHT, which holds the
/// numbers: WEIGHT.absmax (the scales), WEIGHT.quant_map and WEIGHT.quant_state.bitsandbytes__nf4 (JSON: shape and
/// group); or SCB of the layer, which are the scales of int8. int4 has WEIGHT.absmax with two numbers of 16 bits a
/// group, the smallest value and the scale, and WEIGHT.quant_state.hortator__int4; int8_groups has scales of 32 bits,
/// and WEIGHT.quant_state.hortator__int8.
namespace hortator::packed {

/// The tensors of a file for a packed parameter; nothing if it is not packed.
std::map<std::string, at::Tensor> stored_tensors(const std::string& name, const at::Tensor& weight);

/// The field quantization_config of config.json, as transformers has it; empty if no parameter is packed.
std::string quantization_config(const torch::nn::Module& module);

/// A source whose packed weights are one tensor each, as parameters hold them. Other sources are returned as they are.
/// Throws FileError for weights that are packed in other ways (fp4).
std::unique_ptr<weights::WeightSource> with_packed_layers(std::unique_ptr<weights::WeightSource> source);

/// The same, and matrices of a GGUF file keep the bits of its types Q8_0, Q4_0 and Q4_1.
std::unique_ptr<weights::WeightSource> with_layers_of_file(std::unique_ptr<weights::WeightSource> source);

/// The layers of a model whose weights `source`, of one of these functions, has packed. Throws UsageError if the model
/// has no such layer, or another shape. Changes nothing; they become_packed() before they are read.
std::vector<PackableLayer> layers_packed_in(const weights::WeightSource& source, const torch::nn::Module& module,
                                            const Renaming& rename);

}  // namespace hortator::packed
