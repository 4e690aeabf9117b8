#include "checkpoint/write/slice_plan.hpp"

#include <numeric>

namespace hortator::checkpoint {
namespace {

std::int64_t size_in_bytes(const TensorSize& tensor) { return tensor.elements * tensor.element_bytes; }

/// A border between ranks: before element `element` of tensor `tensor`.
struct Border {
  std::size_t tensor = 0;
  std::int64_t element = 0;
};

Border near_byte(std::span<const TensorSize> tensors, std::int64_t byte, std::int64_t grain_bytes) {
  std::size_t i = 0;
  while (i < tensors.size() && byte >= size_in_bytes(tensors[i])) byte -= size_in_bytes(tensors[i++]);
  if (i == tensors.size()) return {i, 0};
  const auto size = size_in_bytes(tensors[i]);
  if (size > grain_bytes) return {i, byte / grain_bytes * grain_bytes / tensors[i].element_bytes};
  return {2 * byte < size ? i : i + 1, 0};
}

}  // namespace

std::vector<TensorSlice> slices_of(std::span<const TensorSize> tensors, int ranks, int rank, std::int64_t grain_bytes) {
  const auto total =
      std::transform_reduce(tensors.begin(), tensors.end(), std::int64_t{0}, std::plus<>(), size_in_bytes);
  const auto part = core::balanced(total, ranks, rank);
  const auto begin = near_byte(tensors, part.begin, grain_bytes);
  const auto end = near_byte(tensors, part.end, grain_bytes);
  std::vector<TensorSlice> slices;
  for (auto i = begin.tensor; i < tensors.size() && i <= end.tensor; ++i) {
    const core::Range elements = {i == begin.tensor ? begin.element : 0,
                                  i == end.tensor ? end.element : tensors[i].elements};
    if (elements.size() > 0) slices.push_back({i, elements});
  }
  return slices;
}

}  // namespace hortator::checkpoint
