#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace hortator {

/// Functions that each call of a prepared model runs on this rank. One that is not set does nothing. A function that
/// communicates must be added on all ranks.
struct ModelHook {
  std::function<void(torch::nn::Module& module)> before_forward = {};
  /// Called after before_forward() of all hooks with the tensors of forward's arguments, also those within structures,
  /// which it may replace for this call: each hook gets those that the one before has left, and the caller keeps its
  /// own.
  std::function<void(torch::nn::Module& module, std::vector<at::Tensor>& arguments)> on_arguments = {};
  /// Gets the tensors of the result, as the caller of the model will, and may replace them. Not called if forward
  /// throws, or if its result is of a type that cannot be moved.
  std::function<void(torch::nn::Module& module, std::vector<at::Tensor>& results)> after_forward = {};
};

/// Removes a hook. Destroying the handle does not.
class ModelHookHandle {
 public:
  explicit ModelHookHandle(std::weak_ptr<ModelHook> hook) : hook_(std::move(hook)) {}

  void remove() {
    if (const auto hook = hook_.lock()) *hook = {};
  }

 private:
  std::weak_ptr<ModelHook> hook_;
};

}  // namespace hortator
