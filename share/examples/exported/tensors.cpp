#include "tensors.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/error.hpp>

namespace exported_example {
namespace {

/// Keeps the buffers of a module as they are.
class BufferScope {
 public:
  explicit BufferScope(const torch::nn::Module& module) : buffers_(module.buffers()) {
    for (const auto& buffer : buffers_) values_.push_back(buffer.clone());
  }
  ~BufferScope() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(values_[i]);
  }
  BufferScope(const BufferScope&) = delete;
  BufferScope& operator=(const BufferScope&) = delete;

 private:
  Tensors buffers_, values_;
};

Tensors copies(const Tensors& tensors) {
  Tensors copied;
  for (const auto& tensor : tensors) copied.push_back(tensor.clone());  // models may change their inputs
  return copied;
}

}  // namespace

Tensors read_inputs(const std::filesystem::path& file, const hortator::ExportedModule& net) {
  const hortator::SafetensorsFile tensors(file);
  Tensors inputs;
  for (std::size_t i = 0; i < net.input_names().size(); ++i)
    inputs.push_back(tensors.get("input_" + std::to_string(i)));
  return inputs;
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
  return gradients;
}

bool divides_rows(hortator::ExportedModule& net, const Tensors& inputs, const at::Tensor& target, std::int64_t count) {
  if (target.dim() == 0 || target.size(0) % count != 0) return false;
  const auto rows = target.size(0) / count;
  const auto has_rows = [&](const at::Tensor& input) { return input.dim() > 0 && input.size(0) == target.size(0); };
  if (!std::ranges::all_of(inputs, has_rows)) return false;
  const at::NoGradGuard no_grad;
  const BufferScope unchanged(net);
  Tensors part;
  for (const auto& input : inputs) part.push_back(input.narrow(0, 0, rows).clone());
  try {
    const auto whole = tensors_of(net.forward(copies(inputs))).at(0);
    const auto of_part = tensors_of(net.forward(part)).at(0);
    return has_rows(whole) && of_part.allclose(whole.narrow(0, 0, rows), 1e-4, 1e-5);
  } catch (const hortator::UsageError&) {
    return false;  // the export allows only the whole batch
  }
}

}  // namespace exported_example
