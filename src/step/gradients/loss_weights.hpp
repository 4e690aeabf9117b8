#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"

namespace hortator::step {

class ModelCore;

/// Losses given as a sum and the number of what was summed (tokens). The gradient is that of the sum over all
/// micro-steps and ranks, divided by their whole number. That is known only when gradients are synchronised: until then
/// each model's share is written down, and its gradients are scaled at the end.
class LossWeights {
 public:
  using Models = std::vector<std::shared_ptr<ModelCore>>;
  using Backward = std::function<void(const at::Tensor& loss)>;

  /// Gradients are means over `shares`; with `settles_late`, settle() is called when they are.
  LossWeights(const Models& models, int shares, bool settles_late)
      : models_(models), shares_(shares), settles_late_(settles_late) {}

  /// `count` is one double on the loss's device; `is_last`: no more micro-steps of this group follow. @collective
  void run(const at::Tensor& loss_sum, const at::Tensor& count, bool is_last, comm::Communicator& communicator,
           const Backward& backward);
  /// The backward of a plain loss, which must not be mixed with sums.
  void run_plain(const at::Tensor& loss, const Backward& backward) const;
  /// Scales the gradients of all models whose group is over. @collective
  void settle(comm::Communicator& communicator);
  /// These parameters' gradients have been cleared.
  void forget(const std::vector<at::Tensor>& parameters);
  void forget_all() { pending_.clear(); }

 private:
  struct Pending {
    std::shared_ptr<ModelCore> model;
    at::Tensor count;
  };

  using Chosen = std::function<bool(const Pending&)>;

  Pending* find(const ModelCore& model);
  void add(const std::shared_ptr<ModelCore>& model, const at::Tensor& count);
  void choose_divisor(const at::Tensor& count, comm::Communicator& communicator);
  void settle(const Chosen& chosen, comm::Communicator& communicator);

  const Models& models_;
  const int shares_;
  const bool settles_late_;
  std::vector<Pending> pending_;
  double divisor_ = 0;  ///< of sums that wait: near the first count, so that they do not overflow in 16 bits
};

}  // namespace hortator::step
