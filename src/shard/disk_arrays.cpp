#include "shard/disk_arrays.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "io/raw_file.hpp"
#include "shard/file_store.hpp"
#include "shard/storage_state.hpp"

namespace hortator::shard {
namespace {

std::unique_ptr<Store> file_for(const std::vector<NamedTensor>& arrays, const std::filesystem::path& folder) {
  io::make_folder(folder);
  std::vector<std::uint64_t> bytes;
  for (const auto& array : arrays) bytes.push_back(array.tensor.storage().nbytes());
  return std::make_unique<FileStore>(bytes, std::vector<FilePlace>(arrays.size()), FileStore::Options{folder});
}

/// One array after the other, each in memory while it gets its values. Returns why the first one could not be kept.
std::exception_ptr write_all(Store& store, const std::vector<NamedTensor>& arrays,
                             const std::function<void(std::size_t, const at::Tensor&)>& values,
                             const std::function<void(std::size_t)>& written) {
  std::exception_ptr problem;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto& storage = arrays[i].tensor.storage();
    const auto bytes = storage.nbytes();
    const Page page{.places = {{.storage = static_cast<int>(i), .bytes = bytes}}, .bytes = bytes};
    try {
      own_memory(storage, new_memory(bytes));
      values(i, arrays[i].tensor);
      if (!problem) store.publish(page, {memory_of(storage), bytes}).wait();
    } catch (...) {
      if (!problem) problem = std::current_exception();
    }
    take_memory(storage, "");
    if (!problem) written(i);
  }
  return problem;
}

// Several fit: one is used while the next ones come. Where some were not written the others can be read by themselves.
PagePlan plan_for(const Residence& home, bool all_are_there) {
  PagePlan plan;
  if (home.resident_bytes > 0) plan.page_bytes = std::min(plan.page_bytes, home.resident_bytes / 4);
  if (!all_are_there) plan.page_bytes = 1;
  return plan;
}

}  // namespace

DiskArrays::DiskArrays(std::vector<Spec> specs, Residence home)
    : home_(std::move(home)), arrays_(absent_arrays(specs)), store_(file_for(arrays_, home_.folder)) {}

void DiskArrays::fill(const std::function<void(std::size_t, const at::Tensor&)>& values,
                      const std::function<void(std::size_t)>& written) {
  const at::NoGradGuard no_grad;
  const auto problem = write_all(*store_, arrays_, values, written);
  PagedStorages storages(arrays_);
  std::vector<int> order(static_cast<std::size_t>(storages.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto plan = plan_for(home_, problem == nullptr);
  auto pages = plan_pages(storages.items(), order, plan);
  pager_ = std::make_unique<Pager>(
      std::move(storages), std::move(pages), std::move(store_),
      Pager::Options{.budget_bytes = home_.resident_bytes, .origin = Pager::Origin::store, .plan = plan});
  if (problem) std::rethrow_exception(problem);
}

at::Tensor DiskArrays::stretch(std::size_t i, std::int64_t begin, at::IntArrayRef sizes) const {
  return stretch_of(arrays_[i].tensor, begin, sizes);
}

}  // namespace hortator::shard
