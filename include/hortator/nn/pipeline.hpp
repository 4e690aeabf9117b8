#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>

#include <functional>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hortator {

/// One layer of pipeline(): a module, and how it is called.
struct PipelineLayer {
  using Tensors = std::vector<at::Tensor>;
  std::shared_ptr<torch::nn::Module> module;  ///< null if it has no parameters
  std::function<Tensors(const Tensors&)> run;
};

/// A layer that takes and returns one tensor: stage(torch::nn::Linear(4, 4)).
template <Module M>
requires(!ModuleObject<M>) PipelineLayer stage(M module) {
  return {.module = module.ptr(), .run = [module](const PipelineLayer::Tensors& inputs) mutable {
            return PipelineLayer::Tensors{module->forward(inputs.at(0))};
          }};
}
/// A module, and a function that calls it with what the layer before it has returned.
template <Module M>
requires(!ModuleObject<M>) PipelineLayer
    stage(M module, std::function<PipelineLayer::Tensors(M&, const PipelineLayer::Tensors&)> run) {
  return {.module = module.ptr(), .run = [module, run = std::move(run)](const PipelineLayer::Tensors& inputs) mutable {
            return run(module, inputs);
          }};
}
/// A function without parameters.
template <typename Function>
requires(!Module<std::remove_cvref_t<Function>>) PipelineLayer stage(Function&& run) {
  return {.module = nullptr, .run = std::forward<Function>(run)};
}

/// Layers that run one after the other. Along parallel.pipeline each rank has some of them: as many parameters as the
/// others, about, and one each where there are as many layers as stages. Up to eight tensors travel between layers.
class HORTATOR_API PipelineModule : public torch::nn::Module, public HasPipelineLayers {
 public:
  explicit PipelineModule(std::vector<PipelineLayer> layers);

  at::Tensor forward(const at::Tensor& input);
  PipelineLayer::Tensors forward_all(const PipelineLayer::Tensors& inputs);
  std::vector<std::string> pipeline_layers() const override;

 private:
  std::vector<PipelineLayer> layers_;
};

HORTATOR_API std::shared_ptr<PipelineModule> pipeline(std::vector<PipelineLayer> layers);
/// The modules of a Sequential, which take and return one tensor each. They keep their names: "0", "1", ...
HORTATOR_API std::shared_ptr<PipelineModule> pipeline(const torch::nn::Sequential& layers);

}  // namespace hortator
