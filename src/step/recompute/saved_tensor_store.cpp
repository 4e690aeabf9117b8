#include "step/recompute/saved_tensor_store.hpp"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <numeric>
#include <utility>

#include "core/text/text.hpp"
#include "step/recompute/frozen_weights.hpp"
#include "step/recompute/saved_tensor_scope.hpp"

namespace hortator {
namespace step {
namespace {

bool is_parameter(const at::Tensor& tensor) {
  const auto& whole = tensor.is_view() ? tensor._base() : tensor;
  return whole.is_leaf() && whole.requires_grad();
}

bool is_wider(const at::Tensor& tensor, at::ScalarType type) {
  return static_cast<std::int64_t>(tensor.element_size()) > static_cast<std::int64_t>(at::elementSize(type));
}

// Whether each element has memory of its own: then the tensor can be copied and restored with the same strides.
bool has_own_elements(const at::Tensor& tensor) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(tensor.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  std::ranges::sort(dims, {}, [&](std::int64_t dim) { return tensor.stride(dim); });
  std::int64_t reach = 0;  // of the dimensions so far, in elements
  for (const auto dim : dims) {
    if (tensor.size(dim) == 1) continue;
    if (tensor.stride(dim) <= reach) return false;
    reach += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  return true;
}

// The elements as one row, in the order of memory where they lie without gaps.
at::Tensor row_of(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() ? at::as_strided(tensor, {tensor.numel()}, {1}, tensor.storage_offset())
                                               : tensor.contiguous().view({-1});
}

void fill_from_row(const at::Tensor& tensor, const at::Tensor& row) {
  if (tensor.is_non_overlapping_and_dense()) {
    row_of(tensor).copy_(row);
  } else {
    tensor.copy_(row.view(tensor.sizes()));
  }
}

}  // namespace

/// A tensor that stays as it is, or a copy of it elsewhere.
class SavedTensorStore::KeptTensor {
 public:
  explicit KeptTensor(const at::Tensor& tensor) : tensor_(tensor.detach()), version_(tensor._version()) {}

  KeptTensor(std::shared_ptr<SavedTensorStore> store, ViewKey key, const at::Tensor& tensor)
      : store_(std::move(store)),
        key_(std::move(key)),
        sizes_(tensor.sizes().vec()),
        strides_(tensor.strides().vec()),
        options_(tensor.options().requires_grad(false)),
        bytes_(static_cast<std::int64_t>(tensor.numel() * static_cast<std::int64_t>(tensor.element_size()))) {
    const at::NoGradGuard no_grad;
    auto row = row_of(tensor.detach());
    const auto& type = store_->options_.dtype;
    if (type && at::isFloatingType(row.scalar_type()) && is_wider(row, *type)) row = row.to(*type);
    if (store_->file_) {
      row = row.cpu();
      row_options_ = row.options();
      row_bytes_ = row.nbytes();
      position_ = store_->file_->write(row.const_data_ptr(), row_bytes_);
    } else {
      row_ = store_->options_.on_host ? row.cpu() : row;
      if (row_.is_alias_of(tensor)) row_ = row_.clone();
    }
  }

  ~KeptTensor() {
    if (!store_) return;
    if (position_) store_->file_->release(*position_, row_bytes_);
    store_->forget(key_, bytes_);
  }
  KeptTensor(const KeptTensor&) = delete;
  KeptTensor& operator=(const KeptTensor&) = delete;

  at::Tensor restored() const {
    if (!store_) return unchanged();
    const at::NoGradGuard no_grad;
    auto row = row_;
    if (position_) {
      row = at::empty({static_cast<std::int64_t>(row_bytes_ / row_options_.dtype().itemsize())}, row_options_);
      store_->file_->read(*position_, row.data_ptr(), row_bytes_);
    }
    auto tensor = at::empty_strided(sizes_, strides_, options_);
    fill_from_row(tensor, row.to(options_));
    return tensor;
  }

 private:
  // Autograd itself compares versions only without hooks.
  at::Tensor unchanged() const {
    if (tensor_._version() == version_) return tensor_;
    throw UsageError({.what = "A tensor was changed in place after autograd had saved it for backward",
                      .why = "gradients would be computed from other values than the loss",
                      .hint = "call backward before the tensor changes, or change a copy"});
  }

  std::shared_ptr<SavedTensorStore> store_;  ///< null for a tensor that stays as it is
  at::Tensor tensor_;
  std::int64_t version_ = 0;
  ViewKey key_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
  at::TensorOptions options_;
  std::int64_t bytes_ = 0;
  at::Tensor row_;  ///< undefined if it is in the file
  std::optional<std::int64_t> position_;
  at::TensorOptions row_options_;
  std::size_t row_bytes_ = 0;
};

class SavedTensorStore::KeepHooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit KeepHooks(std::shared_ptr<SavedTensorStore> store) : store_(std::move(store)) {}
  void call_pack_hook(const at::Tensor& tensor) override { kept_ = store_->keep(tensor); }
  at::Tensor call_unpack_hook() override { return kept_->restored(); }

 private:
  std::shared_ptr<SavedTensorStore> store_;
  std::shared_ptr<KeptTensor> kept_;
};

SavedTensorStore::SavedTensorStore(SavedTensorOptions options) : options_(std::move(options)) {
  const auto& type = options_.dtype;
  if (options_.folder.empty() && !options_.on_host && !type) {
    throw UsageError({.what = "SavedTensorOptions ask for nothing",
                      .why = "saved tensors would stay as they are",
                      .hint = "set folder, on_host or dtype"});
  }
  if (type && !at::isReducedFloatingType(*type)) {
    throw UsageError(
        {.what = text::concat("SavedTensorOptions::dtype is ", *type, ", expected at::kBFloat16 or at::kHalf"),
         .why = "it is the smaller type in which tensors are kept"});
  }
  note_frozen_weights(options_.weights);
  if (!options_.folder.empty()) file_ = std::make_shared<SpillFile>(options_.folder);
}

std::unique_ptr<torch::autograd::SavedVariableHooks> SavedTensorStore::hooks() {
  return std::make_unique<KeepHooks>(shared_from_this());
}

std::int64_t SavedTensorStore::kept_bytes() const {
  const std::scoped_lock lock(mutex_);
  return kept_bytes_;
}

SavedTensorStore::ViewKey SavedTensorStore::key_of(const at::Tensor& tensor) {
  return {tensor.storage().unsafeGetStorageImpl(),
          tensor.storage_offset(),
          tensor.sizes().vec(),
          tensor.strides().vec(),
          tensor.scalar_type(),
          tensor._version()};
}

bool SavedTensorStore::moves(const at::Tensor& tensor) const {
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_meta()) return false;
  if (tensor.is_conj() || tensor.is_neg() || !tensor.has_storage()) return false;
  const auto bytes = tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
  if (bytes < options_.min_bytes || is_parameter(tensor) || is_frozen_weight(tensor) || !has_own_elements(tensor))
    return false;
  const bool narrows = options_.dtype && at::isFloatingType(tensor.scalar_type()) && is_wider(tensor, *options_.dtype);
  return file_ || narrows || (options_.on_host && !tensor.is_cpu());
}

std::shared_ptr<SavedTensorStore::KeptTensor> SavedTensorStore::keep(const at::Tensor& tensor) {
  if (!moves(tensor)) return std::make_shared<KeptTensor>(tensor);
  auto key = key_of(tensor);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end() && !found->second.storage.expired()) {
      if (auto kept = found->second.kept.lock()) return kept;
    }
  }
  auto kept = std::make_shared<KeptTensor>(shared_from_this(), key, tensor);
  const std::scoped_lock lock(mutex_);
  known_.insert_or_assign(std::move(key), KnownView{tensor.storage().getWeakStorageImpl(), kept});
  kept_bytes_ += tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
  return kept;
}

// Another tensor may have the key by now, if the storage of the first one is gone.
void SavedTensorStore::forget(const ViewKey& key, std::int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  kept_bytes_ -= bytes;
  if (const auto found = known_.find(key); found != known_.end() && found->second.kept.expired()) known_.erase(found);
}

}  // namespace step

class SavedTensors::Scope {
 public:
  explicit Scope(const std::shared_ptr<step::SavedTensorStore>& store) : scope_([store] { return store->hooks(); }) {}

 private:
  step::SavedTensorScope scope_;
};

SavedTensors::SavedTensors(const SavedTensorOptions& options)
    : store_(std::make_shared<step::SavedTensorStore>(options)), scope_(std::make_unique<Scope>(store_)) {}

SavedTensors::~SavedTensors() = default;

std::int64_t SavedTensors::kept_bytes() const { return store_->kept_bytes(); }

}  // namespace hortator
