#pragma once

#include <functional>
#include <hortator/accelerator.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpi/communicator.hpp"
#include "simulation/handles.hpp"
#include "simulation/networks/network.hpp"
#include "simulation/samples/feature_statistics.hpp"
#include "simulation/samples/tensor_batch.hpp"
#include "simulation/sections/section.hpp"
#include "simulation/settings/loss.hpp"

namespace hortator::simulation {

/// A network with the loss, optimizer and schedule of its settings, prepared for all ranks.
class TrainedModel : public hortator_model {
 public:
  /// Throws on all ranks if the settings are wrong, or a file cannot be read on one of them. @collective
  TrainedModel(Accelerator& accelerator, std::string name, const Section& settings);

  const std::string& name() const { return name_; }
  /// Of all ranks of its run.
  const mpi::Communicator& comm() const;
  /// Whether no gradients are being accumulated.
  bool is_between_updates() const { return micro_steps_ % accumulation_ == 0; }
  bool is_normalized() const;
  /// Standardises inputs and outputs by these numbers, which are the same on all ranks.
  void standardize(const FeatureStatistics& inputs, const FeatureStatistics& targets);

  using MakeBatch = std::function<TensorBatch()>;
  /// One training step on the batches of all ranks. If anything fails on a rank, all throw and no parameter is changed.
  /// Returns the mean loss of the ranks that want it. @collective
  double train(const MakeBatch& batch, bool wants_loss);
  /// The loss, without training. @collective
  double evaluate(const MakeBatch& batch, bool wants_loss);
  /// Writes the outputs of the batch. Local.
  void infer(const TensorBatch& batch);
  /// Writes the gradient of sum(cotangent * output) with respect to the first input. Local.
  void adjoint(const TensorBatch& batch, const at::Tensor& cotangent, const at::Tensor& gradient);
  using Weights = std::vector<std::pair<std::string, at::Tensor>>;
  /// All parameters and buffers with their names, to be read. Throws UsageError where a rank has only parts of them.
  Weights whole_weights() const;
  /// The same, to be overwritten. Throws UsageError where ranks share memory for them.
  Weights own_weights() const;
  /// Writes the weights to a folder. Throws UsageError on all ranks if one names none. @collective
  void export_to(const char* folder);

 private:
  using Tensors = std::vector<at::Tensor>;
  using Prepared = Model<std::shared_ptr<Network>>;

  void build(const Section& settings);
  void prepare();  ///< @collective
  void set_training(bool on);
  /// In the model's type and on its device; the same tensors if they are.
  Tensors adapted(const Tensors& tensors) const;
  /// Calls the network outside of training, in the run's precision.
  Tensors outputs_of(const Tensors& inputs);
  bool writes_directly(const TensorBatch& batch);
  at::Tensor loss_of(const Tensors& outputs, const TensorBatch& batch) const;
  Tensors in_units(Tensors outputs) const;
  void update(const at::Tensor& loss);  ///< @collective
  void require_local_parameters(const char* call) const;
  at::Tensor input_to_differentiate(const TensorBatch& batch) const;
  Weights weights() const;

  Accelerator& accelerator_;
  std::string name_;
  std::shared_ptr<Network> network_;
  Tensors learning_ = {};  ///< parameters that get gradients
  c10::ScalarType type_ = c10::kFloat;
  Loss loss_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::optional<Schedule> schedule_;
  std::optional<double> max_norm_;
  std::optional<double> max_value_;
  std::optional<Prepared> prepared_;
  std::optional<Optimizer> stepper_;
  std::int64_t accumulation_ = 1;
  std::int64_t micro_steps_ = 0;
  bool is_training_ = true;
};

}  // namespace hortator::simulation
