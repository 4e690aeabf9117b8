#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <concepts>
#include <cstdint>
#include <hortator/detail/leaves.hpp>
#include <hortator/export.hpp>
#include <optional>
#include <utility>
#include <vector>

/// Helpers for structures of tensors (hortator::TensorStructure) and for tensors alike, as in Hugging Face Accelerate's
/// `accelerate.utils`. All of them are local, and leave their argument as it is.
namespace hortator {

namespace detail {

template <typename T>
std::vector<Leaf> tensors_in(T& structure) {
  static_assert(std::same_as<T, at::Tensor> || TensorStructure<T>,
                "expected a tensor, or tensors nested in pairs, tuples, vectors, arrays, optionals, maps with text or "
                "whole numbers as keys, examples and structs with `auto fields() { return std::tie(a, b); }`");
  std::vector<Leaf> leaves;
  collect_leaves(structure, "", leaves);
  return leaves;
}

HORTATOR_API at::Tensor moved(const at::Tensor& tensor, c10::Device device, bool non_blocking);
HORTATOR_API std::int64_t rows_of_first(const std::vector<Leaf>& leaves);
HORTATOR_API std::optional<c10::Device> device_of_first(const std::vector<Leaf>& leaves);
HORTATOR_API at::Tensor rows_between(const at::Tensor& tensor, std::int64_t begin, std::int64_t end);
/// Throws UsageError if the structures have different tensors.
HORTATOR_API at::Tensor joined(const std::vector<std::vector<Leaf>>& parts, std::size_t leaf, std::int64_t dim);
HORTATOR_API at::Tensor as_float32(const at::Tensor& tensor);

}  // namespace detail

/// Returns the structure with each tensor replaced by `change(tensor)`.
template <typename Change, typename T>
T recursively_apply(const Change& change, T structure) {
  for (const auto& leaf : detail::tensors_in(structure)) *leaf.tensor = change(std::as_const(*leaf.tensor));
  return structure;
}

/// Returns the structure with each tensor on `device`. `non_blocking` lets copies from page-locked memory run on.
template <typename T>
T send_to_device(T structure, c10::Device device, bool non_blocking = false) {
  return recursively_apply([&](const at::Tensor& tensor) { return detail::moved(tensor, device, non_blocking); },
                           std::move(structure));
}

/// The size of the first tensor along dimension 0. Throws UsageError for structures without tensors, and for a first
/// tensor that is a single number.
template <typename T>
std::int64_t find_batch_size(const T& structure) {
  return detail::rows_of_first(detail::tensors_in(const_cast<T&>(structure)));
}

/// The device of the first tensor; nothing for structures without tensors.
template <typename T>
std::optional<c10::Device> find_device(const T& structure) {
  return detail::device_of_first(detail::tensors_in(const_cast<T&>(structure)));
}

/// Returns the structure with the rows [begin, end) of each tensor, as views. As for Python's slices, positions beyond
/// the last row mean the last row.
template <typename T>
T slice_tensors(T structure, std::int64_t begin, std::int64_t end) {
  return recursively_apply([&](const at::Tensor& tensor) { return detail::rows_between(tensor, begin, end); },
                           std::move(structure));
}

/// Returns one structure whose tensors are those of all structures, joined along `dim`. Throws UsageError for no
/// structures, and for structures with different tensors.
template <typename T>
T concatenate(const std::vector<T>& structures, std::int64_t dim = 0) {
  std::vector<std::vector<detail::Leaf>> parts;
  for (const auto& structure : structures) parts.push_back(detail::tensors_in(const_cast<T&>(structure)));
  T whole = structures.empty() ? T() : structures.front();
  const auto leaves = detail::tensors_in(whole);
  if (structures.empty()) detail::joined(parts, 0, dim);  // throws
  for (std::size_t i = 0; i < leaves.size(); ++i) *leaves[i].tensor = detail::joined(parts, i, dim);
  return whole;
}

/// Returns the structure with fp16 and bf16 tensors converted to fp32. Other tensors stay as they are.
template <typename T>
T convert_to_fp32(T structure) {
  return recursively_apply(detail::as_float32, std::move(structure));
}

}  // namespace hortator
