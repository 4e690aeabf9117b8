#pragma once

#include <array>
#include <hortator/training/named_optimizer.hpp>
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

}  // namespace hortator
