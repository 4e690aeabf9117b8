#include "parallel/zero/disk_arrays.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "formats/file/raw_file.hpp"
#include "interception/storage_memory.hpp"
#include "machine/device/memory.hpp"
#include "paging/stores/host_stores.hpp"
#include "paging/stores/staged_store.hpp"

namespace hortator::parallel {
namespace {

std::vector<std::uint64_t> bytes_of(const std::vector<ArraySpec>& specs) {
  std::vector<std::uint64_t> bytes;
  for (const auto& spec : specs)
    bytes.push_back(static_cast<std::uint64_t>(spec.elements) * c10::elementSize(spec.type));
  return bytes;
}

std::unique_ptr<paging::Store> file_for(const std::vector<ArraySpec>& specs, const ArrayPlacement& placement,
                                        std::optional<paging::CommonScratch> common) {
  if (!common) formats::make_folder(placement.folder);
  auto file = std::make_unique<paging::FileStore>(bytes_of(specs), std::vector<paging::FileLocation>(specs.size()),
                                                  paging::FileStore::Options{placement.folder}, std::move(common));
  if (placement.device.is_cpu()) return file;
  return std::make_unique<paging::StagedStore>(std::move(file), placement.device, machine::page_locked);
}

// Several pages fit: one is used while the next ones are read. If some arrays were not written, each page holds one
// array, so that the others can be read.
paging::PagePlan plan_for(const ArrayPlacement& placement, bool all_are_there) {
  paging::PagePlan plan;
  if (placement.resident_bytes > 0) plan.page_bytes = std::min(plan.page_bytes, placement.resident_bytes / 4);
  if (!all_are_there) plan.page_bytes = 1;
  return plan;
}

}  // namespace

DiskArrays::DiskArrays(const std::vector<Spec>& specs, ArrayPlacement placement,
                       std::optional<paging::CommonScratch> common)
    : placement_(std::move(placement)), arrays_(absent_arrays(specs, placement_.device)) {
  if (placement_.in_host) {
    store_ = std::make_unique<paging::PinnedStore>(one_page_each(arrays_), placement_.device);
  } else {
    store_ = file_for(specs, placement_, std::move(common));
  }
}

std::uint64_t DiskArrays::room_for(const std::vector<Spec>& specs) {
  return paging::FileStore::room_for(bytes_of(specs));
}

void DiskArrays::fill(const std::function<void(std::size_t, const at::Tensor&)>& values,
                      const std::function<void(std::size_t)>& written, const mpi::AllOrNone& all_or_none) {
  const at::NoGradGuard no_grad;
  std::exception_ptr problem;
  try {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      keep(i, values, all_or_none);
      written(i);
    }
  } catch (...) {
    problem = std::current_exception();
  }
  paging::PagedStorages storages(arrays_, paging::PagedStorages::where_on(placement_.device));
  std::vector<int> order(static_cast<std::size_t>(storages.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto plan = plan_for(placement_, problem == nullptr);
  auto pages = placement_.in_host ? one_page_each(arrays_) : paging::plan_pages(storages.items(), order, plan);
  pager_ = std::make_unique<paging::Pager>(
      std::move(storages), std::move(pages), std::move(store_),
      paging::Pager::Options{
          .budget_bytes = placement_.resident_bytes, .origin = paging::Pager::Origin::store, .plan = plan});
  if (problem) std::rethrow_exception(problem);
}

// Keeps the array in memory only while it gets its values.
void DiskArrays::keep(std::size_t i, const std::function<void(std::size_t, const at::Tensor&)>& values,
                      const mpi::AllOrNone& all_or_none) {
  const auto& storage = arrays_[i].tensor.storage();
  const auto bytes = storage.nbytes();
  const auto number = static_cast<int>(i);
  const paging::Page page{.number = number, .positions = {{.storage = number, .bytes = bytes}}, .bytes = bytes};
  std::exception_ptr problem;
  try {
    interception::own_memory(storage, interception::new_memory(bytes, placement_.device));
    values(i, arrays_[i].tensor);
  } catch (...) {
    problem = std::current_exception();
  }
  try {
    all_or_none([&] {
      if (problem) std::rethrow_exception(problem);
      store_->publish(page, {interception::memory_of(storage), bytes}).wait();
    });
  } catch (...) {
    interception::take_memory(storage, "");
    throw;
  }
  interception::take_memory(storage, "");
}

at::Tensor DiskArrays::range(std::size_t i, std::int64_t begin, at::IntArrayRef sizes) const {
  return range_of(arrays_[i].tensor, begin, sizes);
}

}  // namespace hortator::parallel
