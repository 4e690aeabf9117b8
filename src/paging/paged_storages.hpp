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

/// The distinct storages of some tensors, in the order in which they first come up, and which tensors lie in each.
class PagedStorages {
 public:
  enum class Where { host, one_device };  ///< on a device: only where the store knows how to bring pages there
  static Where where_on(c10::Device device) { return device.is_cpu() ? Where::host : Where::one_device; }

  /// Throws UsageError for tensors that cannot be paged there.
  explicit PagedStorages(std::vector<NamedTensor> tensors, Where where = Where::host);

  int size() const { return static_cast<int>(storages_.size()); }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  const at::Storage& storage(int number) const { return storages_[static_cast<std::size_t>(number)]; }
  /// The first tensor that lies there speaks for it: its name, its type.
  const NamedTensor& speaker(int number) const { return tensors_[speakers_[static_cast<std::size_t>(number)]]; }
  c10::Device device() const { return storages_.empty() ? c10::Device(c10::kCPU) : storage(0).device(); }
  int number_of(const at::Tensor& tensor) const;  ///< -1: none of these
  /// Each tensor's storage.
  int storage_of(std::size_t tensor) const { return places_[tensor]; }

  /// As the planner wants them; the kind is the type of their elements.
  std::vector<PageItem> items() const;

 private:
  std::vector<NamedTensor> tensors_;
  std::vector<int> places_;
  std::vector<at::Storage> storages_;
  std::vector<std::size_t> speakers_;
  std::unordered_map<const c10::StorageImpl*, int> numbers_;
};

}  // namespace hortator::paging
