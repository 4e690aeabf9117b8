#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace hortator::parallel {

/// A backward pass in two halves: gradients of inputs first, those of all other leaves later. Together they compute
/// each operator's gradients once, but those of own autograd functions that have both kinds and do not ask
/// needs_input_grad().
class HalvedBackward {
 public:
  /// Computes the gradients of `inputs`, which are leaves. `gradients` are those of `results`; results without one are
  /// left out. If hooks watch a gradient from which both halves begin, both run now, so that the hooks run once.
  HalvedBackward(const std::vector<at::Tensor>& results, const std::vector<at::Tensor>& gradients,
                 const std::vector<at::Tensor>& inputs);

  /// One for each input; undefined where the results do not depend on it.
  const std::vector<at::Tensor>& input_gradients() const { return input_gradients_; }
  /// Whether both halves have run.
  bool is_whole() const { return is_whole_; }
  /// Adds the gradients of all other leaves to their grad(). Once.
  void add_other_gradients();

 private:
  torch::autograd::edge_list edges_;  ///< where the second half begins
  std::vector<at::Tensor> starts_;
  std::vector<at::Tensor> input_gradients_;
  bool is_whole_ = false;
};

/// Whether a first half runs in this process, on any thread: what it reads is read again by the second one.
bool runs_first_half();

}  // namespace hortator::parallel
