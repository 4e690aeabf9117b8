#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstdint>
#include <hortator/training/saved_tensors.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "step/recompute/spill_file.hpp"

namespace hortator::step {

/// Keeps tensors that autograd has saved, as SavedTensorOptions say, until the graph that needs them is destroyed.
class SavedTensorStore : public std::enable_shared_from_this<SavedTensorStore> {
 public:
  /// Throws UsageError for options that ask for nothing, or for a type that is not of 16 bits.
  explicit SavedTensorStore(SavedTensorOptions options);

  std::unique_ptr<torch::autograd::SavedVariableHooks> hooks();
  std::int64_t kept_bytes() const;

 private:
  class KeptTensor;
  class KeepHooks;
  /// Equal for equal views of one storage at one version.
  using ViewKey = std::tuple<const void*, std::int64_t, std::vector<std::int64_t>, std::vector<std::int64_t>,
                             at::ScalarType, std::int64_t>;
  struct KnownView {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  ///< while this exists, no other storage has its address
    std::weak_ptr<KeptTensor> kept;
  };

  static ViewKey key_of(const at::Tensor& tensor);
  bool moves(const at::Tensor& tensor) const;
  std::shared_ptr<KeptTensor> keep(const at::Tensor& tensor);
  void forget(const ViewKey& key, std::int64_t bytes);

  SavedTensorOptions options_;
  std::shared_ptr<SpillFile> file_;  ///< null without a folder
  mutable std::mutex mutex_;         // threads of devices may release tensors concurrently
  std::map<ViewKey, KnownView> known_;
  std::int64_t kept_bytes_ = 0;
};

}  // namespace hortator::step
