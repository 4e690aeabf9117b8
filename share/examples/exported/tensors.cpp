#include "tensors.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/error.hpp>

namespace exported_example {
Tensors read_inputs(const std::filesystem::path& file, const hortator::ExportedModule& net) {
  const hortator::SafetensorsFile tensors(file);
  Tensors inputs;
  for (std::size_t i = 0; i < net.input_names().size(); ++i)
    inputs.push_back(tensors.get("input_" + std::to_string(i)));
  return inputs;
}

Tensors copies(const Tensors& tensors) {
  Tensors copied;
  for (const auto& tensor : tensors) copied.push_back(tensor.clone());
  return copied;
}

Tensors tensors_of(const hortator::ExportedOutputs& outputs) {
  Tensors tensors;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined() && !outputs.are_numbers[i]) tensors.push_back(outputs[i]);
  }
  return tensors;
}

std::map<std::string, at::Tensor> named_outputs(const Tensors& outputs) {
  std::map<std::string, at::Tensor> named;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    named["output_" + std::to_string(i)] = outputs[i].detach().cpu().contiguous();
  return named;
}

std::map<std::string, at::Tensor> gradients_of_sum(const Tensors& outputs, const hortator::ExportedModule& net) {
  at::Tensor sum;
  for (const auto& output : outputs) {
    if (!output.requires_grad()) continue;
    sum = sum.defined() ? sum + output.sum() : output.sum();
  }
  if (!sum.defined())
    throw hortator::UsageError({.what = "--gradients: no output of the model depends on a parameter that is trained"});
  sum.backward();
  std::map<std::string, at::Tensor> gradients;
  for (const auto& item : net.named_parameters()) {
    if (item.value().grad().defined()) gradients[item.key()] = item.value().grad().cpu().contiguous();
  }
  for (const auto& [other, name] : net.tied_names()) {
    if (gradients.contains(name)) gradients[other] = gradients[name].clone();
  }
  return gradients;
}

bool divides_rows(const std::filesystem::path& model, const Tensors& inputs, const at::Tensor& target,
                  std::int64_t count) {
  if (target.dim() == 0 || target.size(0) % count != 0) return false;
  const auto rows = target.size(0) / count;
  const auto has_rows = [&](const at::Tensor& input) { return input.dim() > 0 && input.size(0) == target.size(0); };
  if (!std::ranges::all_of(inputs, has_rows)) return false;
  const at::NoGradGuard no_grad;
  const auto net = hortator::exported_module(model);  // calls may change its buffers
  const auto result_of = [&](std::int64_t first, std::int64_t length) {
    Tensors part;
    for (const auto& input : inputs) part.push_back(input.narrow(0, first, length).clone());  // and their inputs
    return tensors_of(net->forward(part)).at(0);
  };
  const auto agrees = [&](const at::Tensor& whole, std::int64_t first) {
    return result_of(first, rows).allclose(whole.narrow(0, first, rows), 1e-4, 1e-5);
  };
  try {
    const auto whole = result_of(0, target.size(0));
    return has_rows(whole) && agrees(whole, 0) && agrees(whole, target.size(0) - rows);
  } catch (const hortator::UsageError&) {
    return false;  // the export allows only the whole batch
  }
}

}  // namespace exported_example
