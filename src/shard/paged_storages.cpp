#include "shard/paged_storages.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "base/text.hpp"

namespace hortator::shard {
namespace {

void check(const NamedTensor& named) {
  const auto& tensor = named.tensor;
  const bool is_plain = tensor.layout() == at::kStrided && tensor.has_storage() && tensor.device().is_cpu();
  if (is_plain) return;
  throw UsageError({.what = text::concat("the parameter ", text::quote(named.name), " is ", tensor.layout(), " on ",
                                         tensor.device().str(), ": it cannot be paged"),
                    .why = "pages are made of dense tensors in the host's memory",
                    .hint = "name it among those that stay, or move the module to the CPU first"});
}

}  // namespace

PagedStorages::PagedStorages(std::vector<NamedTensor> tensors) {
  for (auto& named : tensors) {
    if (!named.tensor.defined() || named.tensor.numel() == 0) continue;
    check(named);
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

}  // namespace hortator::shard
