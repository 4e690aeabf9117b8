#include "paging/paged_storages.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::paging {
namespace {

[[noreturn]] void throw_cannot_page(const NamedTensor& named, const char* why, const char* hint) {
  throw UsageError({.what = text::concat("The parameter ", text::quote(named.name), " is ", named.tensor.layout(),
                                         " on ", named.tensor.device().str(), " and cannot be paged"),
                    .why = why,
                    .hint = hint});
}

void check(const NamedTensor& named, PagedStorages::Where where, const NamedTensor& first) {
  const auto& tensor = named.tensor;
  const bool is_plain = tensor.layout() == at::kStrided && tensor.has_storage();
  if (where == PagedStorages::Where::host && !(is_plain && tensor.device().is_cpu()))
    throw_cannot_page(named, "pages are made of dense tensors in the host's memory",
                      "name it in keep_resident, or move the module to the CPU first");
  if (where == PagedStorages::Where::one_device && !(is_plain && tensor.device() == first.tensor.device()))
    throw_cannot_page(named, "pages are made of dense tensors on one device",
                      "name it in keep_resident, or move the whole module to one device first");
}

}  // namespace

PagedStorages::PagedStorages(std::vector<NamedTensor> tensors, Where where) {
  for (auto& named : tensors) {
    if (!named.tensor.defined() || named.tensor.numel() == 0) continue;
    check(named, where, tensors_.empty() ? named : tensors_.front());
    const auto& storage = named.tensor.storage();
    const auto [entry, is_new] = numbers_.try_emplace(storage.unsafeGetStorageImpl(), size());
    if (is_new) {
      storages_.push_back(storage);
      representatives_.push_back(tensors_.size());
    }
    storage_numbers_.push_back(entry->second);
    tensors_.push_back(std::move(named));
  }
}

int PagedStorages::number_of(const at::Tensor& tensor) const {
  if (!tensor.defined() || !tensor.has_storage()) return -1;
  const auto found = numbers_.find(tensor.storage().unsafeGetStorageImpl());
  return found != numbers_.end() ? found->second : -1;
}

std::vector<PageItem> PagedStorages::items() const {
  std::vector<PageItem> items;
  for (int number = 0; number < size(); ++number) {
    items.push_back(
        {.bytes = storage(number).nbytes(), .kind = static_cast<int>(representative(number).tensor.scalar_type())});
  }
  return items;
}

}  // namespace hortator::paging
