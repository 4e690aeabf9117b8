#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <concepts>
#include <filesystem>
#include <hortator/bigmodel/weights.hpp>
#include <hortator/export.hpp>
#include <memory>
#include <string>
#include <vector>

namespace hortator {

namespace exported {
class CompiledCode;
}

/// Options of load_compiled().
struct CompiledOptions {
  /// Weights for a package that was compiled without its own, in any format that load_checkpoint_in_model() reads: by
  /// default the file net.weights.safetensors or net.weights.pt beside the package net.pt2. They are converted to the
  /// types for which the code was compiled; other shapes are an error.
  std::filesystem::path weights = {};
  Renaming rename = {};  ///< from the names in the files to the package's
};

/// A package of AOTInductor, made by load_compiled(). Its weights, buffers among them, are frozen parameters with the
/// names that they had in Python; the compiled code reads their memory, so that values which you copy into them count
/// at once.
class HORTATOR_API CompiledModel : public torch::nn::Module {
 public:
  explicit CompiledModel(std::unique_ptr<exported::CompiledCode> code);
  ~CompiledModel() override;

  /// Runs the code without gradients. Inputs are made contiguous. Throws UsageError for inputs of other shapes or types
  /// than those for which it was compiled, and for tensors on another device.
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs);
  template <std::same_as<at::Tensor>... More>
  std::vector<at::Tensor> forward(const at::Tensor& first, const More&... more) {
    return forward(std::vector<at::Tensor>{first, more...});
  }

  /// Refused: compiled code has the type and the device for which it was compiled.
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;

 private:
  std::unique_ptr<exported::CompiledCode> code_;
};

/// Loads a model that Python compiled for this machine, for inference:
///
///     python3 share/python/compile_for_hortator.py path/to/checkpoint -o bert.pt2
///
///     auto net = hortator::load_compiled("bert.pt2");
///     const auto hidden = net->forward(ids, mask).front();
///
/// Packages of torch._inductor.aoti_compile_and_package work as well. Throws UsageError if the package is missing or
/// was compiled by another version of PyTorch or for another processor, and an error with all names that do not fit for
/// weights of another model. Local.
HORTATOR_API std::shared_ptr<CompiledModel> load_compiled(const std::filesystem::path& package,
                                                          const CompiledOptions& options = {});

}  // namespace hortator
