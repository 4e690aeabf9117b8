#include "comm/decorators/staged_communicator.hpp"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <hortator/error.hpp>

#include "comm/kernels/element.hpp"
#include "comm/operands.hpp"

namespace hortator::comm {
namespace {

using Results = std::vector<std::pair<at::Tensor, at::Tensor>>;  // on the host, on the device

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
}

// Uninitialised, for tensors that are overwritten completely.
at::Tensor empty_on_host(const at::Tensor& tensor) {
  return at::empty_like(tensor.detach(), tensor.options().device(at::kCPU).requires_grad(false));
}

Work bring_back(Results results, Work work) {
  const auto under_way = std::make_shared<Work>(std::move(work));
  return Work([results = std::move(results), under_way] {
    under_way->wait();
    for (const auto& [host, device] : results) device.detach().copy_(host);
  });
}

// Whether `check` accepts the operands. What this rank cannot stage goes to the inner communicator as it is: a back end
// that publishes refusals makes all ranks throw this one's.
template <typename Check>
bool can_stage(const Check& check) {
  try {
    check();
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace

Work StagedCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  const auto check = [&] {
    check_result(tensor, device_, "all_reduce", name());
    check_reducible(tensor.scalar_type(), op);
  };
  if (!can_stage(check)) return inner_->all_reduce(std::move(tensor), op);
  const auto host = on_host(tensor);
  return bring_back({{host, std::move(tensor)}}, inner_->all_reduce(host, op));
}

Work StagedCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  const auto check = [&] {
    check_result(output, device_, "reduce_scatter", name());
    check_operand(input, device_, "reduce_scatter", name());
    check_reducible(input.scalar_type(), op);
    check_parts(input, output, size(), "reduce_scatter");
  };
  if (!can_stage(check)) return inner_->reduce_scatter(std::move(output), input, op);
  const auto host = empty_on_host(output);
  return bring_back({{host, std::move(output)}}, inner_->reduce_scatter(host, on_host(input), op));
}

Work StagedCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  const auto check = [&] {
    check_result(output, device_, "all_gather", name());
    check_operand(input, device_, "all_gather", name());
    check_parts(output, input, size(), "all_gather");
  };
  if (!can_stage(check)) return inner_->all_gather(std::move(output), input);
  const auto host = empty_on_host(output);
  return bring_back({{host, std::move(output)}}, inner_->all_gather(host, on_host(input)));
}

Work StagedCommunicator::broadcast_all(std::vector<at::Tensor> tensors, int root) {
  const auto check = [&] {
    for (const auto& tensor : tensors) check_result(tensor, device_, "broadcast", name());
    check_root(root, size());
  };
  if (!can_stage(check)) return inner_->broadcast_all(std::move(tensors), root);
  Results results;
  std::vector<at::Tensor> hosts;
  for (auto& tensor : tensors) {
    hosts.push_back(on_host(tensor));
    results.emplace_back(hosts.back(), std::move(tensor));
  }
  return bring_back(std::move(results), inner_->broadcast_all(std::move(hosts), root));
}

Work StagedCommunicator::exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) {
  const auto check = [&] { check_exchange(sent, received, device_, size(), name()); };
  if (!can_stage(check)) return inner_->exchange(std::move(sent), std::move(received));
  Results results;
  for (auto& [tensor, peer] : sent) tensor = on_host(tensor);
  for (auto& [tensor, peer] : received) {
    auto host = empty_on_host(tensor);
    results.emplace_back(host, std::exchange(tensor, host));
  }
  return bring_back(std::move(results), inner_->exchange(std::move(sent), std::move(received)));
}

at::Tensor StagedCommunicator::allocate(std::int64_t elements, at::ScalarType type) {
  return at::zeros({elements}, at::TensorOptions(device_).dtype(type));
}

std::unique_ptr<Communicator> StagedCommunicator::split(int color, int key) const {
  return std::make_unique<StagedCommunicator>(inner_->split(color, key), device_);
}

}  // namespace hortator::comm
