#pragma once

#include <array>
#include <hortator/training/named_optimizer.hpp>
#include <hortator/training/sliced_optimizer.hpp>
#include <vector>

/// Optimizers that LibTorch does not have, for prepare() as torch::optim's own: at every ZeRO stage they train as
/// without it, and checkpoints hold them. Each takes parameters, or groups whose options are named() of its options:
///
///     hortator::Lion lion(net->parameters(), {.lr = 1e-4, .weight_decay = 0.1});
///     auto [model, optimizer] = accelerator.prepare(net, lion);
namespace hortator {

using Betas = std::array<double, 2>;

/// Lion (Chen et al., 2023): the sign of a momentum; one moment. Its learning rate is three to ten times smaller than
/// AdamW's, and its weight decay as much larger.
struct LionOptions {
  double lr = 1e-4;
  Betas betas = {0.9, 0.99};
  double weight_decay = 0;
  HORTATOR_API NamedOptions named() const;
};
class HORTATOR_API Lion final : public NamedOptimizer, public ElementwiseOptimizer {
 public:
  explicit Lion(const std::vector<torch::optim::OptimizerParamGroup>& groups, const LionOptions& defaults = {});
  explicit Lion(std::vector<at::Tensor> parameters, const LionOptions& defaults = {});

 private:
  void update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state,
              const NamedOptions& options) override;
};

/// Adam with Nesterov momentum (Dozat, 2016), as Python's torch.optim.NAdam.
struct NAdamOptions {
  double lr = 2e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  HORTATOR_API NamedOptions named() const;
};
class HORTATOR_API NAdam final : public NamedOptimizer, public ElementwiseOptimizer {
 public:
  explicit NAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, const NAdamOptions& defaults = {});
  explicit NAdam(std::vector<at::Tensor> parameters, const NAdamOptions& defaults = {});

 private:
  void update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state,
              const NamedOptions& options) override;
};

/// Rectified Adam (Liu et al., 2019), as Python's torch.optim.RAdam.
struct RAdamOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
  HORTATOR_API NamedOptions named() const;
};
class HORTATOR_API RAdam final : public NamedOptimizer, public ElementwiseOptimizer {
 public:
  explicit RAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, const RAdamOptions& defaults = {});
  explicit RAdam(std::vector<at::Tensor> parameters, const RAdamOptions& defaults = {});

 private:
  void update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state,
              const NamedOptions& options) override;
};

/// Schedule-free AdamW (Defazio et al., 2024), which needs no decay of the learning rate. Call optimizer.eval() of the
/// prepared handle before you evaluate or save a model, and optimizer.train() before you train again; a step in between
/// throws.
struct ScheduleFreeAdamWOptions {
  double lr = 2.5e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  int warmup_steps = 0;
  double r = 0;                ///< the weight of a step in the average is its number to this power
  double weight_lr_power = 2;  ///< and the largest learning rate so far to this one
  HORTATOR_API NamedOptions named() const;
};
class HORTATOR_API ScheduleFreeAdamW final : public NamedOptimizer,
                                             public ElementwiseOptimizer,
                                             public TrainEvalOptimizer {
 public:
  explicit ScheduleFreeAdamW(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                             const ScheduleFreeAdamWOptions& defaults = {});
  explicit ScheduleFreeAdamW(std::vector<at::Tensor> parameters, const ScheduleFreeAdamWOptions& defaults = {});
  void train() override;
  void eval() override;

 private:
  void move(bool to_training);
  void begin_group(NamedOptions& options) override;
  void update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state,
              const NamedOptions& options) override;
};

/// LAMB (You et al., 2020), for large batches: AdamW's direction, scaled for each parameter by the norm of the
/// parameter over that of the direction; by 1 where one of them is zero. Under ZeRO a step sums two numbers for each
/// parameter.
struct LambOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-6;
  double weight_decay = 0.01;
  HORTATOR_API NamedOptions named() const;
};
class HORTATOR_API Lamb final : public SlicedOptimizer {
 public:
  explicit Lamb(const std::vector<torch::optim::OptimizerParamGroup>& groups, const LambOptions& defaults = {});
  explicit Lamb(std::vector<at::Tensor> parameters, const LambOptions& defaults = {});

 private:
  void step_parameters(std::vector<SteppedParameter>& parameters, const NamedOptions& options,
                       const ParameterSlices& slices) override;
};

/// Adafactor (Shazeer and Stern, 2018), as Python's torch.optim.Adafactor: no momentum, and of squares only the means
/// along rows and columns, so that its state is small. Under ZeRO every rank has that state, and a step sums it twice.
struct AdafactorOptions {
  double lr = 1e-2;
  double beta2_decay = -0.8;
  double eps1 = 0;  ///< the smallest mean square; 0: the machine epsilon of the parameter's type
  double eps2 = 1e-3;
  double d = 1;  ///< an update of a larger root mean square is scaled down to this one
  double weight_decay = 0;
  HORTATOR_API NamedOptions named() const;
};
class HORTATOR_API Adafactor final : public SlicedOptimizer {
 public:
  explicit Adafactor(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                     const AdafactorOptions& defaults = {});
  explicit Adafactor(std::vector<at::Tensor> parameters, const AdafactorOptions& defaults = {});

 private:
  class Step;
  void step_parameters(std::vector<SteppedParameter>& parameters, const NamedOptions& options,
                       const ParameterSlices& slices) override;
};

/// How Muon scales its rate for a matrix of A rows and B columns.
enum class MuonRate {
  original,        ///< by sqrt(max(1, A / B))
  match_rms_adamw  ///< by 0.2 sqrt(max(A, B)): then AdamW's rate and weight decay fit
};

/// Muon (Jordan et al., 2024), as Python's torch.optim.Muon: a momentum whose matrices are orthogonalized, for the
/// weights of hidden layers. Give all other parameters, and the embedding and the last layer, to another optimizer.
/// Under ZeRO each matrix has an owner, which gets the other ranks' slices and orthogonalizes it.
struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;
  double momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.775, 2.0315};
  double eps = 1e-7;
  int ns_steps = 5;
  MuonRate rate = MuonRate::original;
  HORTATOR_API NamedOptions named() const;
};
class HORTATOR_API Muon final : public SlicedOptimizer {
 public:
  explicit Muon(const std::vector<torch::optim::OptimizerParamGroup>& groups, const MuonOptions& defaults = {});
  explicit Muon(std::vector<at::Tensor> parameters, const MuonOptions& defaults = {});

 private:
  void check();
  void step_parameters(std::vector<SteppedParameter>& parameters, const NamedOptions& options,
                       const ParameterSlices& slices) override;
};

/// AdamW whose moments take a byte each, and one scale for 64 of them (blockwise dynamic quantisation, Dettmers et al.,
/// 2022): 2.1 bytes a parameter instead of 8.
struct AdamW8bitOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;
  HORTATOR_API NamedOptions named() const;
};
class HORTATOR_API AdamW8bit final : public SlicedOptimizer {
 public:
  explicit AdamW8bit(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                     const AdamW8bitOptions& defaults = {});
  explicit AdamW8bit(std::vector<at::Tensor> parameters, const AdamW8bitOptions& defaults = {});

 private:
  void step_parameters(std::vector<SteppedParameter>& parameters, const NamedOptions& options,
                       const ParameterSlices& slices) override;
};

}  // namespace hortator
