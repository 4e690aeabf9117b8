#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

namespace torch::inductor {
class AOTIModelPackageLoader;
}

namespace hortator::exported {

/// A tensor that compiled code reads.
struct CompiledWeight {
  std::string name = {};                         ///< in the code
  std::vector<std::string> names = {};           ///< all that Python had for the same tensor (tied)
  std::optional<formats::TensorSpec> spec = {};  ///< nothing if the package does not say it
  bool is_constant = false;                      ///< in no checkpoint: only in the file beside the package
};

/// A package of AOTInductor, loaded.
class CompiledCode {
 public:
  /// Throws UsageError if it cannot be loaded, or was compiled by another version of PyTorch or for another processor.
  explicit CompiledCode(std::filesystem::path package);
  ~CompiledCode();
  CompiledCode(const CompiledCode&) = delete;
  CompiledCode& operator=(const CompiledCode&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// What compile_for_hortator.py has noted about it: "torch", "weights" and others.
  const std::map<std::string, std::string>& notes() const { return notes_; }
  /// By their names in Python. Throws UsageError if what compile_for_hortator.py has noted is damaged.
  std::vector<CompiledWeight> weights() const;
  /// The compiled code reads these tensors from now on, all of them, in place: AOTInductor compares neither sizes nor
  /// types. Throws UsageError if it cannot.
  void use(const std::map<std::string, at::Tensor>& weights);
  /// Throws UsageError for inputs for which it was not compiled.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

 private:
  std::filesystem::path path_;
  std::unique_ptr<torch::inductor::AOTIModelPackageLoader> loader_;
  std::map<std::string, std::string> notes_;
};

}  // namespace hortator::exported
