#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <hortator/models/exported.hpp>
#include <map>
#include <string>
#include <vector>

namespace exported_example {

using Tensors = std::vector<at::Tensor>;

/// The tensors input_0, input_1, ... of a file, one for each input of the model.
Tensors read_inputs(const std::filesystem::path& file, const hortator::ExportedModule& net);

/// Copies, because a model may change its inputs.
Tensors copies(const Tensors& tensors);

/// The outputs that are tensors in Python: neither None nor numbers.
Tensors tensors_of(const hortator::ExportedOutputs& outputs);

/// output_0, output_1, ...
std::map<std::string, at::Tensor> named_outputs(const Tensors& outputs);

/// The gradients of the sum of all outputs, by the names of the parameters.
std::map<std::string, at::Tensor> gradients_of_sum(const Tensors& outputs, const hortator::ExportedModule& net);

/// Whether each of `count` ranks can compute its part of the rows: the model of the file takes parts of the batch, and
/// gives for each row what it gives in the whole batch. Models with dropout or batch normalisation do not.
bool divides_rows(const std::filesystem::path& model, const Tensors& inputs, const at::Tensor& target,
                  std::int64_t count);

}  // namespace exported_example
