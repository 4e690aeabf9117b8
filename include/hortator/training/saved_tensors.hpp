#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <memory>
#include <optional>
#include <vector>

namespace hortator {

namespace step {
class SavedTensorStore;
}

/// Where and how the tensors that backward needs (activations) are kept between forward and backward. At least one of
/// the first three members must be set.
struct SavedTensorOptions {
  /// Keeps them in a file in this folder, on a disk of the node: only those of the present operator are in memory. The
  /// file has no name, so that nothing is left behind, whatever ends the process. Gradients are bitwise the same.
  std::filesystem::path folder = {};
  /// Keeps tensors of a device in the host's memory. Gradients are bitwise the same. Nothing changes for CPU tensors.
  bool on_host = false;
  /// Keeps wider floating-point tensors in this type, at::kBFloat16 or at::kHalf. Backward computes in their own type,
  /// from rounded values.
  std::optional<c10::ScalarType> dtype = {};
  std::int64_t min_bytes = std::int64_t{64} << 10;  ///< smaller tensors stay as they are
  /// Frozen weights of modules that are not prepared: they are in memory anyway, and stay there.
  std::vector<at::Tensor> weights = {};
};

/// While it lives, tensors that autograd saves on this thread are kept as the options say: put one into the block of
/// the forward pass, `auto saved = hortator::SavedTensors({.folder = "/scratch"});`. The modules are not changed.
/// Backward may come after its end. A tensor that several operators save is kept once. Parameters, those of
/// prepared models also if they are frozen, their views and tensors whose elements overlap stay as they are. Scopes
/// nest, and within recompute() the arguments of the recomputed call are kept this way. Not available in a process that
/// has loaded Python's torch.
class HORTATOR_API SavedTensors {
 public:
  explicit SavedTensors(const SavedTensorOptions& options);
  ~SavedTensors();
  SavedTensors(const SavedTensors&) = delete;
  SavedTensors& operator=(const SavedTensors&) = delete;

  /// The bytes of this scope's tensors that are now in the file, in the host's memory or in a smaller type.
  std::int64_t kept_bytes() const;

 private:
  class Scope;
  std::shared_ptr<step::SavedTensorStore> store_;
  std::unique_ptr<Scope> scope_;
};

}  // namespace hortator
