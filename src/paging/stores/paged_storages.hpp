#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch::jit {
struct Module;
}
namespace torch::nn {
class Module;
}

namespace hortator::paging {

/// Where a storage lies in a page.
struct PagePosition {
  int storage = 0;         ///< its number among the paged storages
  std::size_t offset = 0;  ///< in the frame
  std::size_t bytes = 0;
};

/// The unit of paging: the bytes of some storages, side by side in one frame.
struct Page {
  int number = 0;
  std::vector<PagePosition> positions = {};  ///< by their offsets
  std::size_t bytes = 0;                     ///< of the frame, alignment gaps included
};

/// A storage, as the planner sees it.
struct PageItem {
  std::size_t bytes = 0;
  int kind = 0;  ///< only storages of one kind share a page; for example its type, or whether it is trained
};

struct PagePlan {
  std::size_t page_bytes = std::size_t{16} << 20;  ///< at most, except for a larger storage
  std::size_t alignment = 64;                      ///< of each storage in its page
  std::size_t granule_bytes = 64;                  ///< a page's bytes are a multiple of this, so that shards are equal
};

/// Distributes storages over pages in the given order (numbers of `items`, each once): neighbours share a page as long
/// as they fit and are of one kind. Pure.
std::vector<Page> plan_pages(std::span<const PageItem> items, std::span<const int> order, const PagePlan& plan);

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

/// Which of a module's tensors are paged.
struct TensorSelection {
  std::vector<std::string> keep_resident = {};  ///< tensors, or modules with all of theirs
  bool buffers = false;
};

/// A module's parameters (and buffers) by their names, without those in `keep_resident`. Throws UsageError for a name
/// that the module does not have.
std::vector<NamedTensor> named_tensors(const torch::nn::Module& module, const TensorSelection& selection);
std::vector<NamedTensor> named_tensors(const torch::jit::Module& module, const TensorSelection& selection);

}  // namespace hortator::paging
