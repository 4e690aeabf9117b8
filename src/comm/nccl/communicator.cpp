#include "comm/nccl/communicator.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <thread>

#include "comm/exchange_agreement.hpp"
#include "comm/exchange_plan.hpp"
#include "comm/kernels/element.hpp"
#include "comm/nccl/datatype.hpp"
#include "comm/nccl/memory.hpp"
#include "comm/nccl/operation.hpp"
#include "comm/operands.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"

namespace hortator::comm {
namespace {

std::size_t scalars_in(const at::Tensor& packed, const NcclReduction& reduction) {
  return static_cast<std::size_t>(packed.numel()) * static_cast<std::size_t>(reduction.scalars);
}

std::vector<NcclOperand> operands_of(const std::vector<PeerTensor>& list) {
  std::vector<NcclOperand> operands;
  for (const auto& [tensor, peer] : list)
    operands.push_back({tensor, NcclOperation::packed(tensor, tensor.scalar_type())});
  return operands;
}

}  // namespace

Work NcclCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  check_result(tensor, device_, "all_reduce", name());
  check_reducible(tensor.scalar_type(), op);
  const auto reduction = nccl_reduction(tensor.scalar_type(), op);
  if (tensor.numel() == 0) return {};
  const auto data = NcclOperation::packed(tensor, reduction.carrier);
  NcclOperation operation(handle_);
  handle_->run("all_reduce", [&](ncclComm_t comm, NcclStream stream) {
    return ncclAllReduce(data.data_ptr(), data.data_ptr(), scalars_in(data, reduction), reduction.type, reduction.op,
                         comm, stream);
  });
  return operation.work({{tensor, data}});
}

Work NcclCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  check_result(output, device_, "reduce_scatter", name());
  check_operand(input, device_, "reduce_scatter", name());
  check_reducible(input.scalar_type(), op);
  check_parts(input, output, size(), "reduce_scatter");
  const auto reduction = nccl_reduction(input.scalar_type(), op);
  if (output.numel() == 0) return {};
  const auto whole = NcclOperation::packed(input, reduction.carrier);
  const auto part = NcclOperation::packed(output, reduction.carrier);
  NcclOperation operation(handle_);
  handle_->run("reduce_scatter", [&](ncclComm_t comm, NcclStream stream) {
    return ncclReduceScatter(whole.data_ptr(), part.data_ptr(), scalars_in(part, reduction), reduction.type,
                             reduction.op, comm, stream);
  });
  return operation.work({{output, part}}, {{input, whole}});
}

Work NcclCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  check_result(output, device_, "all_gather", name());
  check_operand(input, device_, "all_gather", name());
  check_parts(output, input, size(), "all_gather");
  if (input.numel() == 0) return {};
  const auto part = NcclOperation::packed(input, input.scalar_type());
  const auto whole = NcclOperation::packed(output, output.scalar_type());
  NcclOperation operation(handle_);
  handle_->run("all_gather", [&](ncclComm_t comm, NcclStream stream) {
    return ncclAllGather(part.data_ptr(), whole.data_ptr(), part.nbytes(), ncclUint8, comm, stream);
  });
  return operation.work({{output, whole}}, {{input, part}});
}

Work NcclCommunicator::broadcast(at::Tensor tensor, int root) { return broadcast_all({std::move(tensor)}, root); }

Work NcclCommunicator::broadcast_all(std::vector<at::Tensor> tensors, int root) {
  for (const auto& tensor : tensors) check_result(tensor, device_, "broadcast", name());
  check_root(root, size());
  std::erase_if(tensors, [](const at::Tensor& tensor) { return tensor.numel() == 0; });
  if (tensors.empty()) return {};
  std::vector<NcclOperand> operands;
  for (const auto& tensor : tensors) operands.push_back({tensor, NcclOperation::packed(tensor, tensor.scalar_type())});
  NcclOperation operation(handle_);
  handle_->run("broadcast", [&](ncclComm_t comm, NcclStream stream) {
    ncclGroupStart();
    for (const auto& [tensor, data] : operands) {
      ncclBroadcast(data.data_ptr(), data.data_ptr(), data.nbytes(), ncclUint8, root, comm, stream);
    }
    return ncclGroupEnd();  // returns the errors of the whole group
  });
  return operation.work(std::move(operands));
}

Work NcclCommunicator::exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) {
  agree_on_exchange(comm_, sent, received, [&] { check_exchange(sent, received, device_, size(), name()); });
  deliver_own(sent, received, rank());
  const auto is_idle = [&](const PeerTensor& item) { return item.peer == rank() || item.tensor.numel() == 0; };
  std::erase_if(sent, is_idle);
  std::erase_if(received, is_idle);
  if (sent.empty() && received.empty()) return {};
  const auto inputs = operands_of(sent);
  auto results = operands_of(received);
  NcclOperation operation(handle_);
  handle_->run("exchange", [&](ncclComm_t comm, NcclStream stream) {
    ncclGroupStart();
    for (std::size_t i = 0; i < sent.size(); ++i)
      ncclSend(inputs[i].data.data_ptr(), inputs[i].data.nbytes(), ncclUint8, sent[i].peer, comm, stream);
    for (std::size_t i = 0; i < received.size(); ++i)
      ncclRecv(results[i].data.data_ptr(), results[i].data.nbytes(), ncclUint8, received[i].peer, comm, stream);
    return ncclGroupEnd();
  });
  return operation.work(std::move(results), inputs);
}

void NcclCommunicator::barrier() {
  const auto nothing = at::zeros({1}, at::TensorOptions().dtype(at::kByte).device(device_));
  const NcclOperation operation(handle_);
  handle_->run("barrier", [&](ncclComm_t comm, NcclStream stream) {
    return ncclAllReduce(nothing.data_ptr(), nothing.data_ptr(), 1, ncclUint8, ncclSum, comm, stream);
  });
  const auto end = handle_->order()->stream().mark();
  while (!end.is_reached()) {
    handle_->check();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

at::Tensor NcclCommunicator::allocate(std::int64_t elements, at::ScalarType type) {
  at::Tensor tensor;
  try {
    mpi::all_or_none(comm_, [&] { tensor = nccl_allocate(handle_, device_, elements, type); });
  } catch (...) {
    tensor.reset();  // frees it: during stack unwinding memory is not freed
    throw;
  }
  return tensor.zero_();
}

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key) const {
  auto comm = comm_.split(color, key);
  return std::make_unique<NcclCommunicator>(std::move(comm), device_,
                                            std::make_shared<NcclHandle>(*handle_, color, key));
}

}  // namespace hortator::comm
