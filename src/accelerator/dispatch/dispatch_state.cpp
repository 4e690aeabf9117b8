#include "accelerator/dispatch/dispatch_state.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "paging/stores/file_store.hpp"

namespace hortator {
namespace accelerator {
namespace {

/// A page read directly from the file if its bytes are stored as they are used; else as load_checkpoint_in_model()
/// reads it.
paging::FileLocation place_in_file(const std::shared_ptr<const weights::WeightSource>& source,
                                   const weights::Filling& filling) {
  const auto& tensor = filling.tensor;
  if (source->spec(filling.stored).type == tensor.scalar_type() && tensor.is_contiguous()) {
    if (const auto span = source->span(filling.stored))
      return {.file = std::shared_ptr<const formats::FixedFile>(source, span->file), .offset = span->offset};
  }
  const auto read = [source, stored = filling.stored, sizes = tensor.sizes().vec(), strides = tensor.strides().vec(),
                     type = tensor.scalar_type()](std::byte* to) {
    weights::fill(*source, {{.stored = stored, .tensor = at::from_blob(to, sizes, strides, at::TensorOptions(type))}});
  };
  return {.read = read};
}

std::vector<paging::NamedTensor> named(const std::vector<PlacedTensor>& tensors) {
  std::vector<paging::NamedTensor> all;
  for (const auto& one : tensors) {
    require_own_memory(one);
    all.push_back({.name = one.name, .tensor = one.tensor});
    for (const auto& other : one.others) all.push_back({.name = one.name, .tensor = other});
  }
  return all;
}

std::vector<paging::Page> pages_in_order(const std::vector<paging::PageItem>& items, const paging::PagePlan& plan) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  return paging::plan_pages(items, order, plan);
}

std::uint64_t whole(Bytes bytes) { return static_cast<std::uint64_t>(std::max(bytes, Bytes{1})); }

}  // namespace
}  // namespace accelerator

using accelerator::PlacedTensor;

detail::Dispatch::State::State(DeviceMap map, const std::vector<PlacedTensor>& tensors) : map_(std::move(map)) {
  std::vector<at::Tensor> on_devices;
  for (const auto& one : tensors) {
    (one.place.is_disk() ? on_disk_ : in_memory_) += one.tensor.nbytes();
    if (one.place.is_cuda()) on_devices.push_back(one.tensor);
  }
  if (!on_devices.empty()) residents_.emplace(on_devices);
}

void detail::Dispatch::State::page(const std::vector<PlacedTensor>& on_disk,
                                   const std::vector<weights::Filling>& stored,
                                   const std::shared_ptr<const weights::WeightSource>& source,
                                   const accelerator::DispatchPlan& plan, const std::filesystem::path& scratch) {
  paging::PagedStorages storages(accelerator::named(on_disk));
  const auto items = storages.items();
  std::vector<std::uint64_t> bytes;
  for (const auto& item : items) bytes.push_back(item.bytes);
  std::vector<paging::FileLocation> places(items.size());
  for (const auto& filling : stored) {
    const auto number = storages.number_of(filling.tensor);
    if (number >= 0) places[static_cast<std::size_t>(number)] = accelerator::place_in_file(source, filling);
  }
  if (!scratch.empty()) formats::make_folder(scratch);
  const paging::PagePlan pages = {.page_bytes = accelerator::whole(plan.page_bytes)};
  auto store = std::make_unique<paging::FileStore>(std::move(bytes), std::move(places),
                                                   paging::FileStore::Options{.scratch = scratch});
  pager_.emplace(std::move(storages), accelerator::pages_in_order(items, pages), std::move(store),
                 paging::Pager::Options{.budget_bytes = plan.room ? accelerator::whole(*plan.room) : 0,
                                        .origin = paging::Pager::Origin::store,
                                        .plan = pages});
}

void detail::Dispatch::State::offload(const torch::nn::Module& module, const std::vector<PlacedTensor>& tensors,
                                      const std::vector<PlacedTensor>& paged, const DispatchOptions& options) {
  DiskOffloadOptions chosen{.offload_buffers = options.offload_buffers};
  for (const auto& one : tensors) {
    if (!one.place.is_disk() && (!one.is_buffer || options.offload_buffers)) chosen.keep_resident.push_back(one.name);
  }
  for (const auto& one : paged) chosen.keep_resident.push_back(one.name);
  offload_.emplace(disk_offload(module, options.offload_folder, chosen));
}

DispatchCounters detail::Dispatch::State::counters() const {
  DispatchCounters counters{.in_memory = in_memory_, .on_disk = on_disk_};
  if (pager_) {
    const auto counted = pager_->counters();
    counters.peak_page_bytes = counted.peak_frame_bytes;
    counters.pages_read = counted.fetched;
  }
  if (offload_) {
    const auto counted = offload_->counters();
    counters.peak_page_bytes += counted.peak_resident_bytes;
    counters.pages_read += counted.pages_read;
  }
  return counters;
}

void detail::Dispatch::State::remove() {
  if (pager_) pager_->release();
  pager_.reset();
  if (offload_) offload_->remove();
  offload_.reset();
  in_memory_ += std::exchange(on_disk_, 0);
}

// Parts in memory usually come first: without this, nothing would be read until the first part on disk is used.
std::shared_ptr<void> detail::Dispatch::State::begin_use() {
  if (pager_) pager_->expect_use();
  return residents_ ? std::make_shared<bigmodel::OperandPlacementScope>(*residents_) : nullptr;
}

}  // namespace hortator
