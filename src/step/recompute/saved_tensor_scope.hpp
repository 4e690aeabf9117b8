#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <functional>
#include <memory>

namespace hortator::step {

/// While it lives, each tensor that autograd saves on this thread for a backward pass is passed to hooks from `make`.
/// The innermost scope counts.
class SavedTensorScope {
 public:
  using Make = std::function<std::unique_ptr<torch::autograd::SavedVariableHooks>()>;

  explicit SavedTensorScope(Make make);
  ~SavedTensorScope();
  SavedTensorScope(const SavedTensorScope&) = delete;
  SavedTensorScope& operator=(const SavedTensorScope&) = delete;

  /// The innermost scope of this thread, or null.
  static const SavedTensorScope* current();
  std::unique_ptr<torch::autograd::SavedVariableHooks> hooks() const { return make_(); }

 private:
  Make make_;
  const SavedTensorScope* outer_;
};

}  // namespace hortator::step
