#include <hortator/error.hpp>
#include <hortator/nn/pipeline.hpp>
#include <utility>

namespace hortator {
namespace {

/// Stands for a layer without parameters.
class NoParameters final : public torch::nn::Module {};

}  // namespace

PipelineModule::PipelineModule(std::vector<PipelineLayer> layers) : layers_(std::move(layers)) {
  if (layers_.empty()) {
    throw UsageError({.what = "pipeline() got no layers",
                      .why = "each rank along the pipeline runs at least one",
                      .hint = "pass hortator::stage(module) for each of them"});
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& module = layers_[i].module;
    register_module(std::to_string(i), module ? module : std::make_shared<NoParameters>());
  }
}

at::Tensor PipelineModule::forward(const at::Tensor& input) { return forward_all({input}).at(0); }

PipelineLayer::Tensors PipelineModule::forward_all(const PipelineLayer::Tensors& inputs) {
  PipelineLayers stage(layers_.size());
  auto tensors = stage.enter_all([&] { return inputs; });
  for (const auto i : stage) tensors = layers_[i].run(tensors);
  stage.leave(tensors);
  return tensors;
}

std::vector<std::string> PipelineModule::pipeline_layers() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < layers_.size(); ++i) names.push_back(std::to_string(i));
  return names;
}

std::shared_ptr<PipelineModule> pipeline(std::vector<PipelineLayer> layers) {
  return std::make_shared<PipelineModule>(std::move(layers));
}

std::shared_ptr<PipelineModule> pipeline(const torch::nn::Sequential& layers) {
  std::vector<PipelineLayer> all;
  for (auto& layer : *layers) {
    all.push_back({.module = layer.ptr(),
                   .run = [layer = torch::nn::AnyModule(layer)](const PipelineLayer::Tensors& inputs) mutable {
                     return PipelineLayer::Tensors{layer.forward(inputs.at(0))};
                   }});
  }
  return pipeline(std::move(all));
}

}  // namespace hortator
