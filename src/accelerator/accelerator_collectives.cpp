#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>

#include "accelerator/state/random_state.hpp"
#include "accelerator/structures/gathering.hpp"
#include "accelerator/structures/packing.hpp"
#include "accelerator/structures/same_structure.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "parallel/tensor/divided_tensor.hpp"

namespace hortator {
namespace {

comm::ReduceOp operation_of(Reduce reduce) {
  switch (reduce) {
    case Reduce::mean:
      return comm::ReduceOp::mean;
    case Reduce::max:
      return comm::ReduceOp::max;
    case Reduce::min:
      return comm::ReduceOp::min;
    case Reduce::product:
      return comm::ReduceOp::product;
    case Reduce::sum:
      break;
  }
  return comm::ReduceOp::sum;
}

// An undefined tensor is passed on to the communicator, whose error is thrown on all ranks.
at::Tensor detached(const at::Tensor& tensor) { return tensor.defined() ? tensor.detach() : tensor; }

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
  mpi::all_reduce(host, std::span(sizes), MPI_MAX);
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

at::Tensor Accelerator::gather(const at::Tensor& tensor) {
  const CallSite site(__builtin_return_address(0));
  return accelerator::gather(training_->data(), tensor);
}

void Accelerator::gather_leaves(const std::vector<detail::Leaf>& leaves) {
  const CallSite site(__builtin_return_address(0));
  accelerator::gather(training_->data(), leaves);
}

at::Tensor Accelerator::reduce(const at::Tensor& tensor, Reduce operation) {
  const CallSite site(__builtin_return_address(0));
  auto result = tensor.defined() ? parallel::whole_values(tensor).detach().clone() : tensor;
  training_->averaging().communicator_of(result).all_reduce(result, operation_of(operation)).wait();
  return result;
}

void Accelerator::reduce_leaves(const std::vector<detail::Leaf>& leaves, Reduce operation) {
  const CallSite site(__builtin_return_address(0));
  const at::NoGradGuard no_grad;
  check_same_structure(training_->averaging().host, "reduce", leaves, accelerator::Alike::shapes);
  accelerator::in_packs(accelerator::tensors_of(leaves), [&](const auto& pack, const auto& tensors) {
    if (pack.size() == 1) {
      *leaves[pack[0]].tensor = reduce(tensors[0], operation);
      return;
    }
    const auto row = accelerator::pack(tensors);
    training_->averaging().communicator_of(row).all_reduce(row, operation_of(operation)).wait();
    const auto parts = accelerator::unpack(row.unsqueeze(0), tensors);
    for (std::size_t i = 0; i < pack.size(); ++i) *leaves[pack[i]].tensor = parts[i].view(tensors[i].sizes());
  });
}

at::Tensor Accelerator::broadcast(at::Tensor tensor, int from_process) {
  const CallSite site(__builtin_return_address(0));
  training_->channels.communicator_of(tensor).broadcast(detached(tensor), from_process).wait();
  return tensor;
}

void Accelerator::broadcast_leaves(const std::vector<detail::Leaf>& leaves, int from_process) {
  const CallSite site(__builtin_return_address(0));
  check_same_structure(training_->host(), "broadcast", leaves, accelerator::Alike::shapes);
  std::vector<at::Tensor> on_cpu;
  std::vector<at::Tensor> on_device;
  for (const auto& tensor : accelerator::tensors_of(leaves))
    (tensor.is_cpu() ? on_cpu : on_device).push_back(tensor.detach());
  for (const auto* tensors : {&on_cpu, &on_device}) {
    if (!tensors->empty())
      training_->channels.communicator_of(tensors->front()).broadcast_all(*tensors, from_process).wait();
  }
}

at::Tensor Accelerator::pad_across_processes(const at::Tensor& tensor, const PadOptions& options) {
  const CallSite site(__builtin_return_address(0));
  return padded(tensor, sizes_to_pad_to(training_->data().host, {tensor}, options).front(), options);
}

void Accelerator::pad_leaves(const std::vector<detail::Leaf>& leaves, const PadOptions& options) {
  const CallSite site(__builtin_return_address(0));
  check_same_structure(training_->data().host, "pad_across_processes", leaves, accelerator::Alike::dimensions);
  const auto sizes = sizes_to_pad_to(training_->data().host, accelerator::tensors_of(leaves), options);
  for (std::size_t i = 0; i < leaves.size(); ++i) *leaves[i].tensor = padded(*leaves[i].tensor, sizes[i], options);
}

void Accelerator::synchronize_rng_states(const std::vector<at::Generator>& generators) {
  const CallSite site(__builtin_return_address(0));
  accelerator::synchronise(world().comm(), generators.empty() ? accelerator::default_generators(device()) : generators);
}

}  // namespace hortator
