#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"

namespace hortator::step {

class ModelCore;
class ReachMarks;

/// Losses that are given as a sum and the count of its terms (tokens). The gradient is that of the sum over all
/// micro-steps and ranks, divided by the total count. The total is known only when gradients are synchronised: until
/// then the count of each model is recorded, and its gradients are scaled at the end.
class LossWeights {
 public:
  using Models = std::vector<std::shared_ptr<ModelCore>>;
  using Backward = std::function<void(const at::Tensor& loss)>;

  /// Gradients are means over the ranks of the communicators that are passed below; run() settles them. With `shards`
  /// they are means over that many shards, and the caller calls settle() when they are.
  explicit LossWeights(const Models& models, std::optional<int> shards = {}) : models_(models), shards_(shards) {}

  /// The backward pass of a loss sum. `count` is one double on the loss's device. `is_last`: whether this is the
  /// group's last micro-step. @collective
  void run(const at::Tensor& loss_sum, const at::Tensor& count, bool is_last, comm::Communicator& communicator,
           const Backward& backward);
  /// run() of a pass that knows its count when it is over: `backward` divides its loss sums by `divisor`, and returns
  /// the count. `expected`: about the first one. @collective
  void run_late(double expected, bool is_last, comm::Communicator& communicator, c10::Device device,
                const std::function<at::Tensor(double divisor)>& backward);
  /// The backward pass of a plain loss. Throws if it reaches a model that has pending sums.
  void run_plain(const at::Tensor& loss, const Backward& backward) const;
  /// Scales the gradients of all models whose group is complete. @collective
  void settle(comm::Communicator& communicator);
  /// Drops the pending counts of models with these parameters, whose gradients were cleared.
  void forget(const std::vector<at::Tensor>& parameters);
  void forget_all() { pending_.clear(); }

 private:
  struct Pending {
    std::shared_ptr<ModelCore> model;
    at::Tensor count;
  };

  using Condition = std::function<bool(const Pending&)>;

  Pending* find(const ModelCore& model);
  void add(const std::shared_ptr<ModelCore>& model, const at::Tensor& count);
  void settle_after(const std::vector<ReachMarks>& before, const at::Tensor& count, bool is_last,
                    comm::Communicator& communicator);
  void choose_divisor(const at::Tensor& count, comm::Communicator& communicator);
  void settle(const Condition& is_chosen, comm::Communicator& communicator);

  const Models& models_;
  const std::optional<int> shards_;
  std::vector<Pending> pending_;
  double divisor_ = 0;  ///< of pending sums: near the first count, so that they do not overflow in 16 bits
};

}  // namespace hortator::step
