#include "simulation/networks/network.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {

void Network::adopt(const torch::nn::Module& module) {
  for (const auto& item : module.named_children()) register_module(item.key(), item.value());
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    register_parameter(item.key(), item.value(), item.value().requires_grad());
  for (const auto& item : module.named_buffers(/*recurse=*/false)) register_buffer(item.key(), item.value());
}

Network::Tensors SingleNetwork::forward(const Tensors& inputs) {
  if (inputs.size() != 1) {
    throw UsageError({.what = text::concat("This model takes one input, the batch has ", inputs.size()),
                      .hint = "bind one array as HORTATOR_INPUT"});
  }
  return {compute(inputs.front())};
}

void require_features(const at::Tensor& input, std::int64_t dim, std::int64_t count, std::int64_t min_dims) {
  if (input.dim() >= min_dims && input.size(dim) == count) return;
  throw UsageError(
      {.what = text::concat("The input has the shape ", input.sizes(), "; the model expects ", count,
                            " features in dimension ", dim < 0 ? input.dim() + dim : dim, " of at least ", min_dims),
       .why = "Fortran arrays are shown with their dimensions reversed unless the order is as_written",
       .hint = "bind an array of that shape, or change the model's settings"});
}

}  // namespace hortator::simulation
