#include "shard/disk_arrays.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "device/memory.hpp"
#include "io/raw_file.hpp"
#include "shard/pinned_store.hpp"
#include "shard/staged_store.hpp"
#include "shard/storage_state.hpp"

namespace hortator::shard {
namespace {

std::vector<std::uint64_t> bytes_of(const std::vector<ArraySpec>& specs) {
  std::vector<std::uint64_t> bytes;
  for (const auto& spec : specs)
    bytes.push_back(static_cast<std::uint64_t>(spec.elements) * c10::elementSize(spec.type));
  return bytes;
}

std::unique_ptr<Store> file_for(const std::vector<ArraySpec>& specs, const Residence& home,
                                std::optional<CommonScratch> common) {
  if (!common) io::make_folder(home.folder);
  auto file = std::make_unique<FileStore>(bytes_of(specs), std::vector<FilePlace>(specs.size()),
                                          FileStore::Options{home.folder}, std::move(common));
  if (home.device.is_cpu()) return file;
  return std::make_unique<StagedStore>(std::move(file), home.device, device::page_locked);
}

// Several fit: one is used while the next ones come. Where some were not written the others can be read by themselves.
PagePlan plan_for(const Residence& home, bool all_are_there) {
  PagePlan plan;
  if (home.resident_bytes > 0) plan.page_bytes = std::min(plan.page_bytes, home.resident_bytes / 4);
  if (!all_are_there) plan.page_bytes = 1;
  return plan;
}

}  // namespace

DiskArrays::DiskArrays(const std::vector<Spec>& specs, Residence home, std::optional<CommonScratch> common)
    : home_(std::move(home)), arrays_(absent_arrays(specs, home_.device)) {
  if (home_.in_host) {
    store_ = std::make_unique<PinnedStore>(one_page_each(arrays_), home_.device);
  } else {
    store_ = file_for(specs, home_, std::move(common));
  }
}

std::uint64_t DiskArrays::room_for(const std::vector<Spec>& specs) { return FileStore::room_for(bytes_of(specs)); }

void DiskArrays::fill(const std::function<void(std::size_t, const at::Tensor&)>& values,
                      const std::function<void(std::size_t)>& written, const AllOrNone& all_or_none) {
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
  PagedStorages storages(arrays_, PagedStorages::where_on(home_.device));
  std::vector<int> order(static_cast<std::size_t>(storages.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto plan = plan_for(home_, problem == nullptr);
  auto pages = home_.in_host ? one_page_each(arrays_) : plan_pages(storages.items(), order, plan);
  pager_ = std::make_unique<Pager>(
      std::move(storages), std::move(pages), std::move(store_),
      Pager::Options{.budget_bytes = home_.resident_bytes, .origin = Pager::Origin::store, .plan = plan});
  if (problem) std::rethrow_exception(problem);
}

// In memory only while it gets its values.
void DiskArrays::keep(std::size_t i, const std::function<void(std::size_t, const at::Tensor&)>& values,
                      const AllOrNone& all_or_none) {
  const auto& storage = arrays_[i].tensor.storage();
  const auto bytes = storage.nbytes();
  const auto number = static_cast<int>(i);
  const Page page{.number = number, .places = {{.storage = number, .bytes = bytes}}, .bytes = bytes};
  std::exception_ptr problem;
  try {
    own_memory(storage, new_memory(bytes, home_.device));
    values(i, arrays_[i].tensor);
  } catch (...) {
    problem = std::current_exception();
  }
  try {
    all_or_none([&] {
      if (problem) std::rethrow_exception(problem);
      store_->publish(page, {memory_of(storage), bytes}).wait();
    });
  } catch (...) {
    take_memory(storage, "");
    throw;
  }
  take_memory(storage, "");
}

at::Tensor DiskArrays::stretch(std::size_t i, std::int64_t begin, at::IntArrayRef sizes) const {
  return stretch_of(arrays_[i].tensor, begin, sizes);
}

}  // namespace hortator::shard
