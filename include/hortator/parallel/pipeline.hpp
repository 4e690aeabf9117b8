#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <hortator/export.hpp>
#include <optional>
#include <string>
#include <vector>

/// Pipelines: consecutive layers of a model on different ranks (AcceleratorOptions::parallel.pipeline).
namespace hortator {

namespace parallel {
class StagePass;
}

/// The order in which a stage computes the micro-batches of a step.
enum class PipelineSchedule {
  gpipe,        ///< all forward passes, then all backward passes: keeps the activations of all micro-batches
  one_f_one_b,  ///< forward and backward in turn ("1f1b"): keeps at most as many micro-batches as there are stages
  interleaved,  ///< 1f1b with several stages a rank: a smaller bubble for more messages
  /// 1f1b whose backward passes are in two halves ("zb-h1"): gradients of inputs go on to the previous stage, those of
  /// weights are computed where a rank would wait. Keeps the activations of weights until then
  zero_bubble,
};

/// A module that says how it is cut into stages. A module that contains it is cut as well.
class HORTATOR_API HasPipelineLayers {
 public:
  virtual ~HasPipelineLayers() = default;

  /// The names within the module of the layers that its forward runs by PipelineLayers, in that order: "blocks.0",
  /// "blocks.1", ... The first stage also has the parameters that are registered before them, the last stage those
  /// after them. Empty if the module has none of its own: if no other in the model has, the model is cut between its
  /// parts in the order in which they are registered, and its forward stays as it is.
  virtual std::vector<std::string> pipeline_layers() const { return {}; }
  /// Parameters of the first stage that forward also reads after the layers (tied embeddings). The first and the last
  /// stage both have them, and add their gradients.
  virtual std::vector<at::Tensor> used_after_layers() const { return {}; }
};

/// The layers that the current stage runs, for a module's forward:
///
///     hortator::PipelineLayers layers(blocks->size());
///     auto x = layers.enter([&] { return embed(ids); });       // only the first stage embeds
///     for (const auto i : layers) x = blocks[i]->forward(x);
///     layers.leave(x);                                          // returns on the last stage only
///     return norm(x);
///
/// Outside of a pipeline these are all layers, enter() calls the function, and leave() does nothing. Between enter()
/// and leave(), forward may use the module's inputs, which all ranks have, and what the layers compute. Random numbers
/// (dropout) of a layer depend on the step, the micro-batch and the layer, not on the number of stages.
class HORTATOR_API PipelineLayers {
 public:
  /// Throws UsageError unless the module has `layers` layers, as pipeline_layers() has named them.
  explicit PipelineLayers(std::size_t layers);

  /// Whether this is the first stage, which computes what the layers begin with.
  bool is_first() const;
  /// Whether this stage runs all layers: there is no pipeline.
  bool has_all() const;
  /// What the layers begin with: the function's result on the first stage, what the previous one has left elsewhere.
  at::Tensor enter(const std::function<at::Tensor()>& begin);
  std::vector<at::Tensor> enter_all(const std::function<std::vector<at::Tensor>()>& begin);
  /// Sends the results of this stage's last layer to the next stage, and ends forward: it throws an object that
  /// Accelerator::pipeline_step() catches. Returns on the last stage.
  void leave(const at::Tensor& result);
  void leave(const std::vector<at::Tensor>& results);

  class Iterator {
   public:
    Iterator(std::size_t at, parallel::StagePass* pass) : at_(at), pass_(pass) {}
    HORTATOR_API std::size_t operator*() const;
    Iterator& operator++() { return ++at_, *this; }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    std::size_t at_;
    parallel::StagePass* pass_;
  };
  Iterator begin() const { return {first_, pass_}; }
  Iterator end() const { return {last_, pass_}; }

 private:
  parallel::StagePass* pass_;  ///< null outside of a pipeline
  std::size_t first_ = 0, last_;
};

/// Options of Accelerator::pipeline_step() and pipeline_forward():
///
///     auto loss = accelerator.pipeline_step(model, batch, [&](auto& model, auto& part) {
///       return torch::cross_entropy_loss(model(part.data), part.target);
///     });
///
/// The function computes the mean loss of a part of the batch, or a pair of a sum and its count as
/// Accelerator::backward() takes them. It runs on every stage up to the call of the model, which it calls once, and to
/// its end on the last stage only: all ranks along the pipeline get the same batch. The tensors of `batch` (one, or a
/// structure of tensors) are cut along dimension 0. On one rank one part is computed after the other.
struct PipelineStepOptions {
  /// Parts into which the batch is cut along dimension 0. Default: ParallelConfig::micro_batches.
  std::optional<std::int64_t> micro_batches = {};
  /// A file to which the main process writes when each stage of its pipeline computed each micro-batch of this step,
  /// beside the plan: `hortator plot FILE -o times.svg`. All ranks give one, or none does.
  std::filesystem::path times = {};
  /// If not null, pipeline_step() sets it to the losses of the micro-batches, in fp64, the same on all stages: [n]
  /// means, or [n, 2] sums and counts.
  at::Tensor* losses = nullptr;
};

}  // namespace hortator
