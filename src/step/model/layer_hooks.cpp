#include "step/model/layer_hooks.hpp"

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>

#include <cstddef>
#include <hortator/error.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "step/model/model_hooks.hpp"

namespace hortator::step {
namespace {

/// What a Sequential calls in the place of a layer of one tensor.
class HookedLayer : public torch::nn::Module {
 public:
  HookedLayer(torch::nn::AnyModule layer, std::shared_ptr<torch::nn::Module> module)
      : layer_(std::move(layer)), module_(std::move(module)) {}

  ModelHooks& hooks() { return hooks_; }

  at::Tensor forward(at::Tensor input) {
    hooks_.before_forward(*module_);
    std::vector<at::Tensor> tensors = {std::move(input)};
    hooks_.on_arguments(*module_, tensors);
    tensors = {layer_.forward(std::move(tensors.front()))};
    hooks_.after_forward(*module_, tensors);
    return tensors.front();
  }

  std::shared_ptr<torch::nn::Module> clone(const std::optional<c10::Device>& /*device*/) const override {
    throw UsageError({.what = "A model whose layers have hooks cannot be cloned",
                      .why = "the clone's layers would have other names",
                      .hint = "clone the model before add_hook()"});
  }

 private:
  torch::nn::AnyModule layer_;
  std::shared_ptr<torch::nn::Module> module_;  ///< the layer itself, also where it is recomputed
  ModelHooks hooks_;
};

struct FoundLayer {
  torch::nn::AnyModule* caller = nullptr;
  std::shared_ptr<torch::nn::Module> module = nullptr;
};

FoundLayer find_layer(torch::nn::Module& module, const std::string& name) {
  FoundLayer found;
  std::vector<std::string> known;
  module.apply([&](const std::string& path, torch::nn::Module& part) {
    auto* const container = dynamic_cast<torch::nn::SequentialImpl*>(&part);
    if (container == nullptr) return;
    const auto children = container->named_children();
    std::size_t i = 0;
    for (auto& layer : *container) {
      const auto& child = children[i++];
      known.push_back(path.empty() ? child.key() : text::concat(path, ".", child.key()));
      if (known.back() == name) found = {.caller = &layer, .module = child.value()};
    }
  });
  if (found.caller != nullptr) return found;
  throw UsageError(
      {.what = text::concat("add_hook: no torch::nn::Sequential of the model has a layer ", text::quote(name)),
       .why = "C++ calls the forward of other modules directly, so that nothing can come between",
       .hint = known.empty() ? "add the hook to the model" : text::suggestion(name, known)});
}

}  // namespace

ModelHookHandle add_layer_hook(torch::nn::Module& module, const std::string& name, ModelHook hook) {
  const auto found = find_layer(module, name);
  auto hooked = std::dynamic_pointer_cast<HookedLayer>(found.caller->ptr());
  if (!hooked) {
    hooked = std::make_shared<HookedLayer>(*found.caller, found.module);
    *found.caller = torch::nn::AnyModule(hooked);
  }
  return hooked->hooks().add(std::move(hook));
}

}  // namespace hortator::step
