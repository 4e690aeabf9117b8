#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

/// Operators of models whose parts are on several devices: their tensors are copied to one device.
namespace hortator::bigmodel {

/// Where an operator's argument is.
struct OperandPlacement {
  c10::Device device = c10::kCPU;
  bool is_resident = false;  ///< a parameter that stays on its device
};

/// The device on which an operator computes; nothing if its arguments are on one device already. It is the device of
/// the first resident argument that is not on the host, else the device with the highest number. Pure.
std::optional<c10::Device> common_device(std::span<const OperandPlacement> operands);

/// The storages of parameters that stay on their devices.
class ResidentStorages {
 public:
  explicit ResidentStorages(const std::vector<at::Tensor>& tensors) {
    for (const auto& tensor : tensors) {
      storages_.push_back(tensor.storage());
      addresses_.insert(tensor.storage().unsafeGetStorageImpl());
    }
  }
  bool has(const at::Tensor& tensor) const {
    return tensor.has_storage() &&
           addresses_.contains(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
  }

 private:
  std::vector<at::Storage> storages_;  ///< held, so that no other storage gets one of these addresses
  std::unordered_set<const c10::StorageImpl*> addresses_;
};

/// While it lives, each operator of this thread whose tensors are on several devices gets copies of them on one device.
/// Results of in-place operators are copied back. Numbers (tensors without dimensions) on the host, and operators that
/// copy between devices, are left alone.
class OperandPlacementScope {
 public:
  /// `residents` is borrowed.
  explicit OperandPlacementScope(const ResidentStorages& residents);
  ~OperandPlacementScope();
  OperandPlacementScope(const OperandPlacementScope&) = delete;
  OperandPlacementScope& operator=(const OperandPlacementScope&) = delete;

 private:
  const ResidentStorages* former_;
  c10::impl::IncludeDispatchKeyGuard on_;
};

}  // namespace hortator::bigmodel
