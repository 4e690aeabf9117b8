#include "comm/self/self_communicator.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <hortator/error.hpp>

#include "comm/exchange_plan.hpp"
#include "comm/kernels/element.hpp"
#include "comm/operands.hpp"
#include "core/text/text.hpp"

namespace hortator::comm {

Work SelfCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  check_result(tensor, tensor.defined() ? tensor.device() : at::kCPU, "all_reduce", name());
  check_reducible(tensor.scalar_type(), op);
  return {};
}

Work SelfCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  check_result(output, output.defined() ? output.device() : at::kCPU, "reduce_scatter", name());
  check_operand(input, output.device(), "reduce_scatter", name());
  check_reducible(input.scalar_type(), op);
  check_parts(input, output, 1, "reduce_scatter");
  output.copy_(input.reshape(output.sizes()));
  return {};
}

Work SelfCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  check_result(output, output.defined() ? output.device() : at::kCPU, "all_gather", name());
  check_operand(input, output.device(), "all_gather", name());
  check_parts(output, input, 1, "all_gather");
  output.copy_(input.reshape(output.sizes()));
  return {};
}

Work SelfCommunicator::broadcast(at::Tensor tensor, int root) {
  check_result(tensor, tensor.defined() ? tensor.device() : at::kCPU, "broadcast", name());
  check_root(root, size());
  return {};
}

Work SelfCommunicator::exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) {
  const auto& all = sent.empty() ? received : sent;
  const bool is_defined = !all.empty() && all.front().tensor.defined();
  check_exchange(sent, received, is_defined ? all.front().tensor.device() : at::kCPU, size(), name());
  const auto mine = ExchangeSummary::of(sent, received, size());
  if (mine.to != mine.from) throw UsageError(exchange_mismatch(0, describe(sent, 0), 0, describe(received, 0)));
  deliver_own(sent, received, rank());
  return {};
}

at::Tensor SelfCommunicator::allocate(std::int64_t elements, at::ScalarType type) {
  return at::zeros({elements}, at::TensorOptions().dtype(type).device(device_));
}

at::Tensor SelfCommunicator::allocate_common(std::int64_t elements, at::ScalarType type) {
  return allocate(elements, type);
}

std::unique_ptr<Communicator> SelfCommunicator::split(int, int) const {
  return std::make_unique<SelfCommunicator>(device_);
}

}  // namespace hortator::comm
