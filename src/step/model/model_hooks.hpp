#pragma once

#include <cstdint>
#include <hortator/training/model_hook.hpp>
#include <memory>
#include <vector>

namespace hortator::step {

/// The hooks of one model, called in the order in which they were added.
class ModelHooks {
 public:
  ModelHookHandle add(ModelHook hook);
  bool any() const { return !hooks_.empty(); }

  /// Changes when a hook is added or removed.
  struct HookCounts {
    std::int64_t added = 0;  ///< in all
    std::int64_t present = 0;
    bool operator==(const HookCounts&) const = default;
  };
  HookCounts counts() const;

  bool any_on_arguments() const;

  void before_forward(torch::nn::Module& module) const;
  /// Throws UsageError if a hook changes the number of arguments.
  void on_arguments(torch::nn::Module& module, std::vector<at::Tensor>& arguments) const;
  /// Throws UsageError if a hook changes the number of results.
  void after_forward(torch::nn::Module& module, std::vector<at::Tensor>& results) const;

 private:
  std::int64_t added_ = 0;
  std::vector<std::shared_ptr<ModelHook>> hooks_;  ///< one that was removed is empty
};

}  // namespace hortator::step
