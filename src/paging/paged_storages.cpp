#include "paging/paged_storages.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::paging {
namespace {

[[noreturn]] void refuse(const NamedTensor& named, const char* why, const char* hint) {
  throw UsageError({.what = text::concat("the parameter ", text::quote(named.name), " is ", named.tensor.layout(),
                                         " on ", named.tensor.device().str(), ": it cannot be paged"),
                    .why = why,
                    .hint = hint});
}

void check(const NamedTensor& named, PagedStorages::Where where, const NamedTensor& first) {
  const auto& tensor = named.tensor;
  const bool is_plain = tensor.layout() == at::kStrided && tensor.has_storage();
  if (where == PagedStorages::Where::host && !(is_plain && tensor.device().is_cpu()))
    refuse(named, "pages are made of dense tensors in the host's memory",
           "name it among those that stay, or move the module to the CPU first");
  if (where == PagedStorages::Where::one_device && !(is_plain && tensor.device() == first.tensor.device()))
    refuse(named, "pages are made of dense tensors on one device",
           "name it among those that stay, or move the whole module to one device first");
}

}  // namespace

PagedStorages::PagedStorages(std::vector<NamedTensor> tensors, Where where) {
  for (auto& named : tensors) {
    if (!named.tensor.defined() || named.tensor.numel() == 0) continue;
    check(named, where, tensors_.empty() ? named : tensors_.front());
    const auto& storage = named.tensor.storage();
    const auto [place, is_new] = numbers_.try_emplace(storage.unsafeGetStorageImpl(), size());
    if (is_new) {
      storages_.push_back(storage);
      speakers_.push_back(tensors_.size());
    }
    places_.push_back(place->second);
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
        {.bytes = storage(number).nbytes(), .kind = static_cast<int>(speaker(number).tensor.scalar_type())});
  }
  return items;
}

}  // namespace hortator::paging
