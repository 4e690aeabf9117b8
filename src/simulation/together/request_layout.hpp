#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hortator::simulation {

/// The types and shapes of tensors that follow each other in memory: plain data, which other processes read.
struct RequestLayout {
  static constexpr std::size_t max_tensors = 8;
  static constexpr std::size_t max_dims = 8;
  struct TensorLayout {
    std::int32_t type = 0;  ///< at::ScalarType
    std::int32_t dims = 0;
    std::array<std::int64_t, max_dims> sizes{};

    bool operator==(const TensorLayout&) const = default;
  };

  std::int32_t count = 0;
  std::array<TensorLayout, max_tensors> tensors{};

  bool operator==(const RequestLayout&) const = default;
};

/// The layout of these tensors; nothing if there are too many, or one has too many dimensions.
std::optional<RequestLayout> layout_of(const std::vector<at::Tensor>& tensors);

/// The memory that tensors of the layout need.
std::size_t bytes_of(const RequestLayout& layout);

/// Tensors of the layout in the memory from `begin` on, whose alignment is that of a cache line.
std::vector<at::Tensor> tensors_in(const RequestLayout& layout, std::byte* begin);

/// Copies these tensors of the layout, which may be on any device, to where tensors_in() finds them.
void copy_to(std::byte* begin, const RequestLayout& layout, const std::vector<at::Tensor>& tensors);

/// The number of samples, the first dimension of all tensors; nothing if they differ in it.
std::optional<std::int64_t> samples_of(const RequestLayout& layout);

/// Which requests can be one batch: those with the same tensors up to the number of samples. Each group has the indices
/// of its requests in order, and the groups are in the order of their first. A request whose tensors differ in the
/// number of samples is a group of its own.
std::vector<std::vector<std::size_t>> common_batches(const std::vector<RequestLayout>& requests);

}  // namespace hortator::simulation
