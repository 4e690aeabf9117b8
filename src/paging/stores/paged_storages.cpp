#include "paging/stores/paged_storages.hpp"

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <type_traits>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::paging {
namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

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

bool belongs_to(const std::string& name, const std::string& whole) {
  return name == whole || (name.starts_with(whole) && name[whole.size()] == '.');
}

void require_known(const std::string& wanted, const std::vector<NamedTensor>& tensors) {
  const bool is_known =
      std::ranges::any_of(tensors, [&](const NamedTensor& tensor) { return belongs_to(tensor.name, wanted); });
  if (is_known) return;
  std::vector<std::string> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  throw UsageError({.what = text::concat("keep_resident: the module has no parameter or module ", text::quote(wanted)),
                    .hint = text::suggestion(wanted, names)});
}

// A tensor with several names stays if one of them is listed.
std::vector<NamedTensor> without(std::vector<NamedTensor> tensors, const std::vector<std::string>& keep) {
  for (const auto& wanted : keep) require_known(wanted, tensors);
  std::vector<const c10::StorageImpl*> kept;
  for (const auto& [name, tensor] : tensors) {
    const bool stays = std::ranges::any_of(keep, [&n = name](const auto& k) { return belongs_to(n, k); });
    if (stays && tensor.defined() && tensor.has_storage()) kept.push_back(tensor.storage().unsafeGetStorageImpl());
  }
  std::erase_if(tensors, [&](const NamedTensor& named) {
    if (!named.tensor.defined() || !named.tensor.has_storage()) return false;
    return std::ranges::find(kept, named.tensor.storage().unsafeGetStorageImpl()) != kept.end();
  });
  return tensors;
}

template <typename Module>
std::vector<NamedTensor> tensors_of(const Module& module, const TensorSelection& selection) {
  std::vector<NamedTensor> tensors;
  const auto add_all = [&](const auto& items) {
    for (const auto& item : items) {
      if constexpr (std::is_same_v<Module, torch::nn::Module>) {
        tensors.push_back({.name = item.key(), .tensor = item.value()});
      } else {
        tensors.push_back({.name = item.name, .tensor = item.value});
      }
    }
  };
  add_all(module.named_parameters());
  if (selection.buffers) add_all(module.named_buffers());
  return without(std::move(tensors), selection.keep_resident);
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

std::vector<NamedTensor> named_tensors(const torch::nn::Module& module, const TensorSelection& selection) {
  return tensors_of(module, selection);
}

std::vector<NamedTensor> named_tensors(const torch::jit::Module& module, const TensorSelection& selection) {
  return tensors_of(module, selection);
}

std::vector<Page> plan_pages(std::span<const PageItem> items, std::span<const int> order, const PagePlan& plan) {
  std::vector<Page> pages;
  int kind = 0;
  for (const int storage : order) {
    const auto& item = items[static_cast<std::size_t>(storage)];
    const auto offset = pages.empty() ? 0 : rounded_up(pages.back().bytes, plan.alignment);
    if (pages.empty() || item.kind != kind || offset + item.bytes > plan.page_bytes) {
      pages.push_back({.number = static_cast<int>(pages.size())});
    }
    auto& page = pages.back();
    page.positions.push_back({.storage = storage, .offset = page.positions.empty() ? 0 : offset, .bytes = item.bytes});
    page.bytes = page.positions.back().offset + item.bytes;
    kind = item.kind;
  }
  for (auto& page : pages) page.bytes = rounded_up(page.bytes, plan.granule_bytes);
  return pages;
}

}  // namespace hortator::paging
