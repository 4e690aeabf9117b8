#include "shard/disk_arrays.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "io/raw_file.hpp"
#include "shard/file_store.hpp"
#include "shard/storage_state.hpp"

namespace hortator::shard {
namespace {

std::vector<at::Tensor> empty_arrays(const std::vector<DiskArrays::Spec>& specs) {
  std::vector<at::Tensor> arrays;
  for (const auto& spec : specs) {
    arrays.push_back(at::empty({0}, at::TensorOptions().dtype(spec.type)));
    // The size without the memory, which comes when its turn does.
    auto& storage = *arrays.back().storage().unsafeGetStorageImpl();
    storage.set_nbytes(static_cast<std::size_t>(spec.elements) * c10::elementSize(spec.type));
    arrays.back().unsafeGetTensorImpl()->set_sizes_contiguous({spec.elements});
  }
  return arrays;
}

std::unique_ptr<Store> file_for(const std::vector<at::Tensor>& arrays, const std::filesystem::path& folder) {
  io::make_folder(folder);
  std::vector<std::uint64_t> bytes;
  for (const auto& array : arrays) bytes.push_back(array.storage().nbytes());
  return std::make_unique<FileStore>(bytes, std::vector<FilePlace>(arrays.size()), FileStore::Options{folder});
}

/// One array after the other, each in memory while it gets its values.
void write_all(Store& store, const std::vector<at::Tensor>& arrays,
               const std::function<void(std::size_t, const at::Tensor&)>& values) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto& storage = arrays[i].storage();
    const auto bytes = storage.nbytes();
    own_memory(storage, new_memory(bytes));
    values(i, arrays[i]);
    const Page page{.places = {{.storage = static_cast<int>(i), .bytes = bytes}}, .bytes = bytes};
    store.publish(page, {memory_of(storage), bytes}).wait();
    take_memory(storage, "");
  }
}

// Several fit: one is used while the next ones come.
PagePlan plan_for(const Residence& home) {
  PagePlan plan;
  if (home.resident_bytes > 0) plan.page_bytes = std::min(plan.page_bytes, home.resident_bytes / 4);
  return plan;
}

std::vector<NamedTensor> named_arrays(const std::vector<DiskArrays::Spec>& specs,
                                      const std::vector<at::Tensor>& arrays) {
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < specs.size(); ++i) tensors.push_back({.name = specs[i].name, .tensor = arrays[i]});
  return tensors;
}

}  // namespace

DiskArrays::DiskArrays(std::vector<Spec> specs, Residence home)
    : specs_(std::move(specs)),
      home_(std::move(home)),
      arrays_(empty_arrays(specs_)),
      store_(file_for(arrays_, home_.folder)) {}

void DiskArrays::fill(const std::function<void(std::size_t, const at::Tensor&)>& values) {
  const at::NoGradGuard no_grad;
  write_all(*store_, arrays_, values);
  PagedStorages storages(named_arrays(specs_, arrays_));
  std::vector<int> order(static_cast<std::size_t>(storages.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto plan = plan_for(home_);
  auto pages = plan_pages(storages.items(), order, plan);
  pager_ = std::make_unique<Pager>(
      std::move(storages), std::move(pages), std::move(store_),
      Pager::Options{.budget_bytes = home_.resident_bytes, .origin = Pager::Origin::store, .plan = plan});
}

at::Tensor DiskArrays::stretch(std::size_t i, std::int64_t begin, at::IntArrayRef sizes) const {
  return stretch_of(arrays_[i], begin, sizes);
}

at::Tensor stretch_of(const at::Tensor& memory, std::int64_t begin, at::IntArrayRef sizes) {
  // By hand: set_() asks for the storage's pointer.
  auto stretch =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(memory.storage()), memory.key_set(), memory.dtype());
  auto* impl = stretch.unsafeGetTensorImpl();
  impl->set_storage_offset(memory.storage_offset() + begin);
  impl->set_sizes_contiguous(sizes);
  return stretch;
}

}  // namespace hortator::shard
