#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <hortator/datasets/tensor_dataset.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::data {

std::int64_t common_rows(std::span<const at::Tensor> tensors) {
  for (const auto& tensor : tensors) {
    if (tensor.dim() == 0) throw UsageError({.what = "A tensor of a data set is a single number: it has no rows"});
    if (tensor.size(0) == tensors[0].size(0)) continue;
    throw UsageError(
        {.what = text::concat("The tensors of a data set have ", tensors[0].size(0), " and ", tensor.size(0), " rows"),
         .why = "a sample is one row of each"});
  }
  return tensors[0].size(0);
}

at::Tensor rows_at(const at::Tensor& tensor, std::span<const std::int64_t> rows) {
  // index_select only reads the index.
  auto* numbers = const_cast<std::int64_t*>(rows.data());
  const auto index = at::from_blob(numbers, {static_cast<std::int64_t>(rows.size())}, at::TensorOptions(at::kLong));
  return tensor.index_select(0, index);
}

}  // namespace hortator::data
