#pragma once

#include <functional>
#include <hortator/accelerator.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpi/communicator.hpp"
#include "simulation/calls/handles.hpp"
#include "simulation/derivatives/linearization.hpp"
#include "simulation/networks/network.hpp"
#include "simulation/samples/feature_statistics.hpp"
#include "simulation/samples/tensor_batch.hpp"
#include "simulation/sections/section.hpp"
#include "simulation/settings/loss.hpp"

#include "simulation/sections/section.hpp"
#include "simulation/settings/run_settings.hpp"
#include "simulation/together/joint_inference.hpp"
#include "simulation/training/left_out_steps.hpp"
#include "simulation/training/loss_agreement.hpp"

namespace hortator::simulation {

/// A network with the loss, optimizer and schedule of its settings, prepared for all ranks.
class TrainedModel : public Handled<hortator_model, TrainedModel> {
 public:
  /// What a run asks of all its models.
  struct Policy {
    std::int64_t number = 0;  ///< of this model in the run
    NonfiniteStep on_nonfinite = NonfiniteStep::skip;
    int threads = 1;  ///< of OpenMP, with which this model computes
  };
  /// Throws on all ranks if the settings are wrong, or a file cannot be read on one of them. @collective
  TrainedModel(Accelerator& accelerator, std::string name, const Section& settings, const Policy& policy);

  const std::string& name() const { return name_; }
  /// The communicator of all ranks of its run.
  const mpi::Communicator& comm() const;
  /// Whether no gradients are being accumulated.
  bool is_between_updates() const { return micro_steps_ % accumulation_ == 0; }
  bool is_normalized() const;
  /// Standardises inputs and outputs by these numbers, which are the same on all ranks.
  void standardize(const FeatureStatistics& inputs, const FeatureStatistics& targets);

  using MakeBatch = std::function<TensorBatch()>;
  /// The result of a step, or of an evaluation.
  struct Step {
    bool is_done = true;              ///< false: it was left out on all ranks, and changed nothing
    std::optional<double> loss = {};  ///< the mean of the ranks that want it
  };
  /// One training step on the batches of all ranks. If anything fails on a rank, all throw and no parameter is changed.
  /// A step is left out if no rank has samples, or a loss or gradient is not finite. @collective
  Step train(const MakeBatch& batch, bool wants_loss);
  /// The loss, without training; left out if no rank has samples. @collective
  Step evaluate(const MakeBatch& batch, bool wants_loss);
  /// Writes the outputs of the batch. Local, but for models that ranks infer together: these wait for other ranks, no
  /// longer than the settings allow.
  void infer(const TensorBatch& batch);
  /// Writes the gradient of sum(cotangent * output) with respect to the first input. Local.
  void adjoint(const TensorBatch& batch, const at::Tensor& cotangent, const at::Tensor& gradient);
  /// An output, and the input with respect to which it is differentiated.
  struct DerivativeOf {
    std::int64_t output = 0;
    std::int64_t input = 0;
  };
  /// Writes the change of the output for a small change of the input along `direction`. Local.
  void tangent(const TensorBatch& batch, DerivativeOf which, const at::Tensor& direction, const at::Tensor& tangent);
  /// Writes [samples, output..., input...], or all derivatives to an array [output..., input...]. Local.
  void jacobian(const TensorBatch& batch, DerivativeOf which, const at::Tensor& jacobian);
  using Weights = std::vector<std::pair<std::string, at::Tensor>>;
  /// All parameters and buffers with their names, to be read. Throws UsageError where a rank has only parts of them.
  Weights whole_weights() const;
  /// The same, to be overwritten. Throws UsageError where ranks share memory for them.
  Weights own_weights() const;
  /// Throws Error if a parameter that learns is not finite: such a model must not replace a good checkpoint. Local, and
  /// the same on all ranks; checks nothing where a rank has only parts of the parameters.
  void require_finite_parameters() const;
  /// Writes the weights to a folder. Throws UsageError on all ranks if one names none. @collective
  void export_to(const char* target);

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
  std::int64_t call_number(bool trains) const;
  void require_trainable() const;
  void require_unsharded_parameters() const;
  void require_forces_of_whole_parameters() const;
  double weight_of(std::int64_t samples) const;
  void judge(const at::Tensor& loss, bool wants_loss, LocalLoss& mine) const;
  at::Tensor forward(const TensorBatch& batch, bool wants_loss, LocalLoss& mine);
  bool update(const at::Tensor& loss);      ///< returns false if it was left out. @collective
  bool try_update(const at::Tensor& loss);  ///< @collective
  bool leave_out();
  void refuse_update();
  void require_local_parameters(const char* call) const;
  Linearization linearized(const TensorBatch& batch, DerivativeOf which, bool twice);
  Weights weights() const;

  Accelerator& accelerator_;
  std::string name_;
  Policy policy_;
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
  bool refuses_update_ = false;  ///< the rest of it, after a micro-step that was left out
  LeftOutSteps left_out_;
  LossWeighing weighing_ = LossWeighing::by_samples;
  std::optional<JointInference::Settings> together_;
  std::unique_ptr<JointInference> joint_;  ///< null where each rank infers on its own
  bool has_statistics_ = false;
  bool is_training_ = true;
};

}  // namespace hortator::simulation
