#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

namespace hortator::step {

/// Where the tensors of a recorded step's modules are, and the modes that decide what the modules compute.
class RecordedModules {
 public:
  /// Call it before the recording begins.
  void add(const torch::nn::Module& module);
  /// Whether a recording is still valid: no tensor has moved, none was frozen or unfrozen, and all modules train or
  /// evaluate as they did.
  bool are_unchanged() const;

 private:
  struct RecordedTensor {
    at::Tensor tensor;
    const void* memory;
    bool learns;
  };
  struct RecordedMode {
    std::weak_ptr<const torch::nn::Module> module;
    bool is_training;
  };
  std::vector<RecordedTensor> tensors_;
  std::vector<RecordedMode> modes_;
};

}  // namespace hortator::step
