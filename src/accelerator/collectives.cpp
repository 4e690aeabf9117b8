#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "accelerator/training.hpp"
#include "base/call_site.hpp"
#include "mpi/collectives.hpp"

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

}  // namespace

at::Tensor Accelerator::gather(const at::Tensor& tensor) {
  const CallSite site(__builtin_return_address(0));
  if (num_processes() == 1) return tensor;  // as the reference: a single number stays one
  const at::NoGradGuard no_grad;
  const auto part = tensor.dim() == 0 ? tensor.view({1}) : tensor;
  auto sizes = part.sizes().vec();
  sizes[0] *= num_processes();
  auto whole = at::empty(sizes, part.options().requires_grad(false));
  training_->communicator_of(part).all_gather(whole, part).wait();
  return whole;
}

at::Tensor Accelerator::gather_for_metrics(const at::Tensor& tensor) {
  const CallSite site(__builtin_return_address(0));
  auto whole = gather(tensor);
  const auto* loader = training_->active_loader();
  if (loader == nullptr || !loader->end_of_dataloader() || loader->remainder() <= 0 || whole.dim() == 0) return whole;
  return whole.narrow(0, 0, std::min(loader->remainder(), whole.size(0)));
}

at::Tensor Accelerator::reduce(const at::Tensor& tensor, Reduce operation) {
  const CallSite site(__builtin_return_address(0));
  auto result = tensor.detach().clone();
  training_->communicator_of(result).all_reduce(result, operation_of(operation)).wait();
  return result;
}

at::Tensor Accelerator::broadcast(at::Tensor tensor, int from_process) {
  const CallSite site(__builtin_return_address(0));
  training_->communicator_of(tensor).broadcast(tensor.detach(), from_process).wait();
  return tensor;
}

at::Tensor Accelerator::pad_across_processes(const at::Tensor& tensor, const PadOptions& options) {
  const CallSite site(__builtin_return_address(0));
  // A dimension that the tensor does not have leaves it alone, as the reference does; all ranks take part all the same.
  const bool applies = options.dim >= -tensor.dim() && options.dim < tensor.dim();
  const auto mine = applies ? tensor.size(options.dim) : 0;
  const auto largest = mpi::all_reduce(training_->host(), mine, MPI_MAX);
  if (!applies || mine == largest) return tensor;
  // constant_pad_nd counts (before, after) pairs from the last dimension.
  const auto dim = options.dim < 0 ? options.dim + tensor.dim() : options.dim;
  std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * (tensor.dim() - dim)), 0);
  pads[pads.size() - (options.pad_first ? 2 : 1)] = largest - mine;
  return at::constant_pad_nd(tensor, pads, options.pad_index);
}

}  // namespace hortator
