#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <hortator/detail/leaves.hpp>
#include <hortator/export.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hortator::detail {

/// The loss of a micro-batch: a mean, or a sum and the count of its terms.
struct MicroLoss {
  at::Tensor loss = {};
  at::Tensor count = {};  ///< undefined for a mean
};

/// A batch that is computed in parts along dimension 0.
struct MicroBatches {
  std::int64_t rows = 0;
  bool has_counts = false;
  std::function<MicroLoss(std::int64_t begin, std::int64_t end)> compute;
};

/// The tensors of a batch.
template <typename Batch>
std::vector<Leaf> batch_leaves(Batch& batch) {
  std::vector<Leaf> leaves;
  collect_leaves(batch, "", leaves);
  return leaves;
}

/// The size along dimension 0 that all defined tensors of the batch have. Throws UsageError, which names a tensor that
/// has another.
HORTATOR_API std::int64_t rows_of(const std::vector<Leaf>& leaves);

/// The rows [begin, end) of a batch: copies, since kernels may round by how memory is aligned.
template <typename Batch>
Batch rows_of(const Batch& batch, std::int64_t begin, std::int64_t end) {
  Batch part = batch;
  for (const auto& leaf : batch_leaves(part)) {
    if (leaf.tensor->defined()) *leaf.tensor = leaf.tensor->narrow(0, begin, end - begin).clone();
  }
  return part;
}

HORTATOR_API at::Tensor count_tensor(double count);

inline MicroLoss micro_loss(at::Tensor mean) { return {.loss = std::move(mean)}; }
inline MicroLoss micro_loss(const std::pair<at::Tensor, at::Tensor>& sum) {
  return {.loss = sum.first, .count = sum.second};
}
template <typename Number>
requires std::is_arithmetic_v<Number> MicroLoss micro_loss(const std::pair<at::Tensor, Number>& sum) {
  return {.loss = sum.first, .count = count_tensor(static_cast<double>(sum.second))};
}

/// Calls a function that takes the model and a part of the batch, or only the part.
template <typename Function, typename Model, typename Batch>
auto call_with_part(Function& function, Model& model, Batch& part) {
  if constexpr (std::invocable<Function&, Model&, Batch&>) {
    return function(model, part);
  } else {
    return function(part);
  }
}

}  // namespace hortator::detail
