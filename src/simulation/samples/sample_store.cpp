#include "simulation/samples/sample_store.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <array>
#include <cstring>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

/// The arrays of samples, with their names; outputs are not kept.
template <typename Batch>
auto kinds_of(Batch& batch) {
  return std::array{std::pair{"inputs", &batch.inputs}, std::pair{"targets", &batch.targets},
                    std::pair{"loss_arguments", &batch.loss_arguments}};
}

void require_sample_shape(const std::string& name, const at::Tensor& stored, const at::Tensor& tensor) {
  if (tensor.sizes().slice(1) == stored.sizes().slice(1) && tensor.scalar_type() == stored.scalar_type()) return;
  throw UsageError(
      {.what = text::concat("A sample's ", name, " has the shape ", tensor.sizes().slice(1), " (", tensor.scalar_type(),
                            "); those so far have ", stored.sizes().slice(1), " (", stored.scalar_type(), ")"),
       .why = "a buffer holds samples of one shape and type",
       .hint = "use one buffer for each kind of samples"});
}

void copy_samples(const at::Tensor& from, const at::Tensor& to) {
  if (from.is_contiguous() && from.device().is_cpu()) {
    std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
  } else {
    to.copy_(from);
  }
}

}  // namespace

std::int64_t SampleStore::check(const TensorBatch& batch) const {
  std::int64_t count = -1;
  const auto stored = kinds_of(tensors_);
  const auto given = kinds_of(batch);
  for (std::size_t kind = 0; kind < given.size(); ++kind) {
    const auto& [name, tensors] = given[kind];
    if (is_allocated() && tensors->size() != stored[kind].second->size()) {
      throw UsageError({.what = text::concat("The batch has ", tensors->size(), ' ', name, ", the samples so far have ",
                                             stored[kind].second->size())});
    }
    for (std::size_t i = 0; i < tensors->size(); ++i) {
      const auto& tensor = (*tensors)[i];
      if (tensor.dim() == 0 || (count >= 0 && tensor.size(0) != count)) {
        throw UsageError({.what = text::concat("The batch's arrays differ in their number of samples: ", name,
                                               " have the shape ", tensor.sizes(), ", others have ", count, " samples"),
                          .why = "the first dimension counts samples (in Fortran the last)"});
      }
      count = tensor.size(0);
      if (is_allocated()) require_sample_shape(name, (*stored[kind].second)[i], tensor);
    }
  }
  if (batch.inputs.empty())
    throw UsageError({.what = "The batch has no input", .hint = "bind an array as HORTATOR_INPUT"});
  return count;
}

void SampleStore::reserve(const TensorBatch& batch) {
  if (is_allocated()) return;
  TensorBatch tensors;
  const auto to = kinds_of(tensors);
  const auto from = kinds_of(batch);
  for (std::size_t kind = 0; kind < from.size(); ++kind) {
    for (const auto& tensor : *from[kind].second) {
      auto shape = tensor.sizes().vec();
      shape[0] = capacity_;
      to[kind].second->push_back(at::empty(shape, tensor.options().device(at::kCPU).requires_grad(false)));
    }
  }
  tensors_ = std::move(tensors);
}

void SampleStore::copy_rows(const TensorBatch& batch, std::int64_t from, std::int64_t slot, std::int64_t count) {
  reserve(batch);
  const at::NoGradGuard no_grad;
  const auto to = kinds_of(tensors_);
  const auto given = kinds_of(batch);
  for (std::size_t kind = 0; kind < given.size(); ++kind) {
    for (std::size_t i = 0; i < given[kind].second->size(); ++i)
      copy_samples((*given[kind].second)[i].narrow(0, from, count), (*to[kind].second)[i].narrow(0, slot, count));
  }
}

TensorBatch SampleStore::rows(const std::vector<std::int64_t>& slots) const {
  TensorBatch batch;
  const auto index = at::tensor(slots, at::kLong);
  const auto to = kinds_of(batch);
  const auto from = kinds_of(tensors_);
  for (std::size_t kind = 0; kind < from.size(); ++kind) {
    for (const auto& tensor : *from[kind].second) to[kind].second->push_back(tensor.index_select(0, index));
  }
  return batch;
}

std::vector<std::pair<std::string, at::Tensor>> SampleStore::named(std::int64_t count) const {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& [name, tensors] : kinds_of(tensors_)) {
    for (std::size_t i = 0; i < tensors->size(); ++i)
      all.emplace_back(text::concat(name, i), (*tensors)[i].narrow(0, 0, count));
  }
  return all;
}

// For each kind of array their number, then for each array its type, number of dimensions and sizes.
std::vector<std::int64_t> SampleStore::layout() const {
  std::vector<std::int64_t> numbers;
  if (!is_allocated()) return numbers;
  for (const auto& [name, tensors] : kinds_of(tensors_)) {
    numbers.push_back(static_cast<std::int64_t>(tensors->size()));
    for (const auto& tensor : *tensors) {
      numbers.push_back(static_cast<std::int64_t>(tensor.scalar_type()));
      numbers.push_back(tensor.dim() - 1);
      for (const auto size : tensor.sizes().slice(1)) numbers.push_back(size);
    }
  }
  return numbers;
}

TensorBatch SampleStore::batch_of(const std::vector<std::int64_t>& layout, std::int64_t count) {
  TensorBatch batch;
  auto next = layout.begin();
  for (const auto& [name, tensors] : kinds_of(batch)) {
    for (auto arrays = *next++; arrays > 0; --arrays) {
      const auto type = static_cast<at::ScalarType>(*next++);
      const auto dims = *next++;
      std::vector<std::int64_t> shape = {count};
      shape.insert(shape.end(), next, next + dims);
      next += dims;
      tensors->push_back(at::empty(shape, type));
    }
  }
  return batch;
}

void SampleStore::move_to(const TensorBatch& memory, std::int64_t count) {
  const at::NoGradGuard no_grad;
  const auto from = arrays_of(tensors_);
  const auto to = arrays_of(memory);
  for (std::size_t i = 0; i < from.size(); ++i) to[i].narrow(0, 0, count).copy_(from[i].narrow(0, 0, count));
  tensors_ = memory;
  is_moved_ = true;
}

std::vector<at::Tensor> SampleStore::arrays_of(const TensorBatch& batch) {
  std::vector<at::Tensor> arrays;
  for (const auto& [name, tensors] : kinds_of(batch)) arrays.insert(arrays.end(), tensors->begin(), tensors->end());
  return arrays;
}

}  // namespace hortator::simulation
