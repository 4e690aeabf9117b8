#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "paging/page.hpp"

namespace hortator::paging {

/// A parameter or buffer by its name in the module.
struct NamedTensor {
  std::string name = {};
  at::Tensor tensor = {};
};

/// The distinct storages of some tensors, in the order of their first tensors, and which tensors lie in each.
class PagedStorages {
 public:
  enum class Where { host, one_device };  ///< one_device needs a store that can copy pages to the device
  static Where where_on(c10::Device device) { return device.is_cpu() ? Where::host : Where::one_device; }

  /// Throws UsageError for tensors that cannot be paged in this place.
  explicit PagedStorages(std::vector<NamedTensor> tensors, Where where = Where::host);

  int size() const { return static_cast<int>(storages_.size()); }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  const at::Storage& storage(int number) const { return storages_[static_cast<std::size_t>(number)]; }
  /// The first tensor that lies in the storage; gives it its name and type.
  const NamedTensor& representative(int number) const {
    return tensors_[representatives_[static_cast<std::size_t>(number)]];
  }
  c10::Device device() const { return storages_.empty() ? c10::Device(c10::kCPU) : storage(0).device(); }
  int number_of(const at::Tensor& tensor) const;  ///< -1 if it lies in none of the storages
  /// The number of the storage in which the tensor number `tensor` lies.
  int storage_of(std::size_t tensor) const { return storage_numbers_[tensor]; }

  /// The storages for the planner; the kind is the type of their elements.
  std::vector<PageItem> items() const;

 private:
  std::vector<NamedTensor> tensors_;
  std::vector<int> storage_numbers_;
  std::vector<at::Storage> storages_;
  std::vector<std::size_t> representatives_;
  std::unordered_map<const c10::StorageImpl*, int> numbers_;
};

}  // namespace hortator::paging
