#include <ATen/ops/cat.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/training/structures.hpp>

#include "core/text/text.hpp"

namespace hortator::detail {

at::Tensor moved(const at::Tensor& tensor, c10::Device device, bool non_blocking) {
  return tensor.defined() ? tensor.to(device, non_blocking) : tensor;
}

std::int64_t rows_of_first(const std::vector<Leaf>& leaves) {
  if (leaves.empty() || !leaves.front().tensor->defined() || leaves.front().tensor->dim() == 0) {
    throw UsageError({.what = leaves.empty() ? "The structure has no tensors, so it has no batch size"
                                             : "The first tensor has no dimensions, so there is no batch size",
                      .hint = "give a structure whose first tensor has samples along dimension 0"});
  }
  return leaves.front().tensor->size(0);
}

std::optional<c10::Device> device_of_first(const std::vector<Leaf>& leaves) {
  if (leaves.empty() || !leaves.front().tensor->defined()) return std::nullopt;
  return leaves.front().tensor->device();
}

at::Tensor rows_between(const at::Tensor& tensor, std::int64_t begin, std::int64_t end) {
  if (!tensor.defined() || tensor.dim() == 0) {
    throw UsageError({.what = "A tensor without dimensions cannot be sliced",
                      .hint = "slice structures whose tensors all have samples along dimension 0"});
  }
  return tensor.slice(0, begin, end);
}

at::Tensor joined(const std::vector<std::vector<Leaf>>& parts, std::size_t leaf, std::int64_t dim) {
  if (parts.empty()) throw UsageError({.what = "There are no structures to concatenate", .hint = "give at least one"});
  std::vector<at::Tensor> tensors;
  for (const auto& part : parts) {
    if (part.size() != parts.front().size() || part[leaf].path != parts.front()[leaf].path) {
      throw UsageError(
          {.what = text::concat("Structures to concatenate have different tensors: the first has ",
                                text::count(static_cast<std::int64_t>(parts.front().size()), "tensor"),
                                ", another has ", text::count(static_cast<std::int64_t>(part.size()), "tensor"),
                                leaf < part.size()
                                    ? text::concat(", with ", text::quote(part[leaf].path), " in the place of ",
                                                   text::quote(parts.front()[leaf].path))
                                    : std::string()),
           .hint = "give structures with the same keys and lengths"});
    }
    tensors.push_back(*part[leaf].tensor);
  }
  return at::cat(tensors, dim);
}

at::Tensor as_float32(const at::Tensor& tensor) {
  return tensor.defined() && at::isReducedFloatingType(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor;
}

}  // namespace hortator::detail
