#pragma once

#include <torch/data/example.h>

#include <ATen/core/Tensor.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <hortator/export.hpp>
#include <span>
#include <tuple>
#include <utility>

namespace hortator {

namespace data {
/// The number of rows. Throws UsageError unless all tensors have the same number.
HORTATOR_API std::int64_t common_rows(std::span<const at::Tensor> tensors);
HORTATOR_API at::Tensor rows_at(const at::Tensor& tensor, std::span<const std::int64_t> rows);
}  // namespace data

/// Samples in memory: a sample is a row of each tensor. A batch is a copy of its rows: a tensor, an Example for two
/// tensors, or a tuple for more.
template <std::size_t count>
requires(count > 0) class TensorDataset {
 public:
  explicit TensorDataset(std::array<at::Tensor, count> tensors)
      : tensors_(std::move(tensors)), size_(data::common_rows(tensors_)) {}

  std::int64_t size() const { return size_; }
  auto get(std::int64_t i) const {
    return joined([i](const at::Tensor& tensor) { return tensor[i]; });
  }
  auto get_batch(std::span<const std::int64_t> samples) const {
    return joined([samples](const at::Tensor& tensor) { return data::rows_at(tensor, samples); });
  }

 private:
  template <typename Take>
  auto joined(const Take& take) const {
    if constexpr (count == 1) {
      return take(tensors_[0]);
    } else if constexpr (count == 2) {
      return torch::data::Example<>(take(tensors_[0]), take(tensors_[1]));
    } else {
      return std::apply([&](const auto&... tensors) { return std::make_tuple(take(tensors)...); }, tensors_);
    }
  }

  std::array<at::Tensor, count> tensors_;
  std::int64_t size_;
};

template <std::same_as<at::Tensor>... Tensors>
auto tensor_dataset(const Tensors&... tensors) {
  return TensorDataset<sizeof...(Tensors)>(std::array<at::Tensor, sizeof...(Tensors)>{tensors...});
}

}  // namespace hortator
