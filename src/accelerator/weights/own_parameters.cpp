#include "accelerator/weights/own_parameters.hpp"

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

[[noreturn]] void refuse(const std::string& layer, const std::string& parameter) {
  const auto name = layer.empty() ? parameter : layer + "." + parameter;
  throw UsageError({.what = text::concat("The layer ", text::quote(layer),
                                         " computes with another tensor than its parameter ", text::quote(name)),
                    .why =
                        "an assignment to the member does not change the parameter, which optimizers and checkpoints "
                        "have and which gets no gradient",
                    .hint = text::concat("to tie two layers, leave this one out and compute with the other's ",
                                         parameter, " in forward: torch::linear(x, embedding->weight)")});
}

void require_own(const torch::nn::Module& layer, const std::string& name, const char* parameter,
                 const at::Tensor& member) {
  const auto parameters = layer.named_parameters(/*recurse=*/false);
  const auto* own = parameters.find(parameter);
  if (own != nullptr && own->defined() && own->requires_grad() && !own->is_same(member)) refuse(name, parameter);
}

/// Checks the weight, and the bias where the type has one, if the layer is of one of these types.
template <typename... Layers>
void require_own_members(const torch::nn::Module& layer, const std::string& name) {
  const auto check = [&]<typename Layer>(const Layer* one) {
    if (one == nullptr) return;
    require_own(layer, name, "weight", one->weight);
    if constexpr (requires { one->bias; }) require_own(layer, name, "bias", one->bias);
  };
  (check(layer.as<Layers>()), ...);
}

}  // namespace

void require_own_parameters(const torch::nn::Module& module) {
  using namespace torch::nn;
  const auto check = [](const std::string& name, const torch::nn::Module& layer) {
    require_own_members<LinearImpl, BilinearImpl, EmbeddingImpl, EmbeddingBagImpl, Conv1dImpl, Conv2dImpl, Conv3dImpl,
                        LayerNormImpl, GroupNormImpl>(layer, name);
  };
  check("", module);
  for (const auto& child : module.named_modules("", /*include_self=*/false)) check(child.key(), *child.value());
}

}  // namespace hortator::accelerator
