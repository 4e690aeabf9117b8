#include "accelerator/structures/padding.hpp"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/scalar_tensor.h>

#include <cmath>
#include <hortator/error.hpp>

#include "accelerator/structures/gathering.hpp"
#include "accelerator/structures/same_structure.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::accelerator {
namespace {

bool has_dimension(const at::Tensor& tensor, std::int64_t dim) { return dim >= -tensor.dim() && dim < tensor.dim(); }

std::int64_t size_along(const at::Tensor& tensor, std::int64_t dim) {
  return has_dimension(tensor, dim) ? tensor.size(dim) : 0;
}

bool can_hold(at::ScalarType type, double number) {
  const bool is_whole = at::isIntegralType(type, /*includeBool=*/true);
  if (is_whole && !(std::abs(number) < 0x1p63)) return false;
  try {
    const auto held = at::scalar_tensor(number, type).item<double>();
    return is_whole ? held == number : std::isfinite(held) == std::isfinite(number);
  } catch (const std::exception&) {  // the number is too large
    return false;
  }
}

// Why the tensor cannot be padded; empty if it can. Checked also where nothing is missing, since other ranks pad.
std::string refusal_to_pad(const at::Tensor& tensor, const PadOptions& options) {
  if (!has_dimension(tensor, options.dim) || can_hold(tensor.scalar_type(), options.pad_index)) return "";
  return UsageError({.what = text::concat("pad_index is ", options.pad_index, ", which a tensor of type ",
                                          tensor.scalar_type(), " cannot hold"),
                     .why = "it would be padded with another number",
                     .hint = "use a number of that type, or convert the tensor first"})
      .what();
}

// The largest sizes of all ranks along the dimension. All ranks throw if a tensor of some rank cannot be padded.
// @collective
std::vector<std::int64_t> sizes_to_pad_to(const mpi::Communicator& host, const std::vector<at::Tensor>& tensors,
                                          const PadOptions& options) {
  std::vector<std::int64_t> sizes;
  std::string problem;
  for (const auto& tensor : tensors) {
    sizes.push_back(size_along(tensor, options.dim));
    if (problem.empty()) problem = refusal_to_pad(tensor, options);
  }
  sizes.push_back(problem.empty() ? 0 : 1);
  mpi::all_reduce(host, std::span(sizes), mpi::Op::max);
  if (sizes.back() > 0) mpi::agree(host, {.failed = !problem.empty(), .problem = problem});
  sizes.pop_back();
  return sizes;
}

// Returns a tensor without that dimension unchanged, as Hugging Face Accelerate does.
at::Tensor padded(const at::Tensor& tensor, std::int64_t size, const PadOptions& options) {
  const auto missing = size - size_along(tensor, options.dim);
  if (missing == 0 || !has_dimension(tensor, options.dim)) return tensor;
  // constant_pad_nd counts (before, after) pairs from the last dimension.
  const auto dim = options.dim < 0 ? options.dim + tensor.dim() : options.dim;
  std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * (tensor.dim() - dim)), 0);
  pads[pads.size() - (options.pad_first ? 2 : 1)] = missing;
  return at::constant_pad_nd(tensor, pads, options.pad_index);
}

}  // namespace

at::Tensor pad_across(const mpi::Communicator& host, const at::Tensor& tensor, const PadOptions& options) {
  return padded(tensor, sizes_to_pad_to(host, {tensor}, options).front(), options);
}

void pad_across(const mpi::Communicator& host, const std::vector<detail::Leaf>& leaves, const PadOptions& options) {
  check_same_structure(host, "pad_across_processes", leaves, Alike::dimensions);
  const auto sizes = sizes_to_pad_to(host, tensors_of(leaves), options);
  for (std::size_t i = 0; i < leaves.size(); ++i) *leaves[i].tensor = padded(*leaves[i].tensor, sizes[i], options);
}

}  // namespace hortator::accelerator
