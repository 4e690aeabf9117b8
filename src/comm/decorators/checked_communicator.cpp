#include "comm/decorators/checked_communicator.hpp"

#include "comm/operands.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

std::uint64_t mix(std::uint64_t state, const at::Tensor* tensor_or_none) {
  if (tensor_or_none == nullptr) return state;
  const auto& tensor = *tensor_or_none;
  if (!tensor.defined()) return core::mix(state, 1);
  state = core::mix(state, static_cast<std::uint64_t>(tensor.scalar_type()) + 2);
  for (const auto size : tensor.sizes()) state = core::mix(state, static_cast<std::uint64_t>(size));
  return state;
}

}  // namespace

std::uint64_t CheckedCommunicator::hash(const Call& call) {
  auto hash = core::hash(call.detail, core::hash(call.verb));
  hash = core::mix(hash, static_cast<std::uint64_t>(call.number.value_or(-1)));
  hash = mix(mix(hash, call.first), call.second);
  if (call.list == nullptr) return hash;
  for (const auto& tensor : *call.list) hash = mix(hash, &tensor);
  return hash;
}

std::string CheckedCommunicator::describe(const Call& call) {
  auto description = std::string(call.verb);
  if (!call.detail.empty()) description += text::concat(" (", call.detail, ")");
  if (call.first) description += " of " + comm::describe(*call.first);
  if (call.second) description += " to " + comm::describe(*call.second);
  if (call.list) {
    std::vector<std::string> tensors;
    for (const auto& tensor : *call.list) tensors.push_back(comm::describe(tensor));
    description += " of " + text::join(tensors);
  }
  if (call.number)
    description += text::concat(call.first || call.list ? " from rank " : " of elements: ", *call.number);
  return description;
}

void CheckedCommunicator::compare(const Call& call) const {
  comparison_->compare(hash(call), [&] { return describe(call); });
}

Work CheckedCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  compare({.verb = "all_reduce", .detail = comm::name(op), .first = &tensor});
  return inner_->all_reduce(std::move(tensor), op);
}

Work CheckedCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  compare({.verb = "reduce_scatter", .detail = comm::name(op), .first = &input, .second = &output});
  return inner_->reduce_scatter(std::move(output), input, op);
}

Work CheckedCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  compare({.verb = "all_gather", .first = &input, .second = &output});
  return inner_->all_gather(std::move(output), input);
}

Work CheckedCommunicator::broadcast(at::Tensor tensor, int root) {
  compare({.verb = "broadcast", .number = root, .first = &tensor});
  return inner_->broadcast(std::move(tensor), root);
}

Work CheckedCommunicator::broadcast_all(std::vector<at::Tensor> tensors, int root) {
  compare({.verb = "broadcast_all", .number = root, .list = &tensors});
  return inner_->broadcast_all(std::move(tensors), root);
}

void CheckedCommunicator::barrier() {
  compare({.verb = "barrier"});
  inner_->barrier();
}

at::Tensor CheckedCommunicator::allocate(std::int64_t elements, at::ScalarType type) {
  compare({.verb = "allocate", .detail = c10::toString(type), .number = elements});
  return inner_->allocate(elements, type);
}

at::Tensor CheckedCommunicator::allocate_common(std::int64_t elements, at::ScalarType type) {
  compare({.verb = "allocate_common", .detail = c10::toString(type), .number = elements});
  return inner_->allocate_common(elements, type);
}

std::unique_ptr<Communicator> CheckedCommunicator::split(int color, int key) const {
  compare({.verb = "split"});
  return std::make_unique<CheckedCommunicator>(inner_->split(color, key), comparison_->comm().split(color, key));
}

}  // namespace hortator::comm
