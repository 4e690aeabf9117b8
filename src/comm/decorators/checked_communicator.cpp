#include "comm/decorators/checked_communicator.hpp"

#include <c10/core/GradMode.h>

#include <utility>

#include "comm/operands.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

std::uint64_t mix_kind(std::uint64_t state, const at::Tensor& tensor) {
  return core::mix(state, tensor.defined() ? static_cast<std::uint64_t>(tensor.scalar_type()) + 2 : 1);
}

std::uint64_t mix_shape(std::uint64_t state, const at::Tensor& tensor) {
  state = core::mix(state, static_cast<std::uint64_t>(tensor.defined() ? tensor.dim() : -1));
  if (!tensor.defined()) return state;
  for (const auto size : tensor.sizes()) state = core::mix(state, static_cast<std::uint64_t>(size));
  return state;
}

// Then the shape of the one follows from that of the other.
bool fit(const at::Tensor& whole, const at::Tensor& part, int parts) {
  return whole.defined() && part.defined() && whole.numel() == part.numel() * parts &&
         whole.scalar_type() == part.scalar_type();
}

// Why a back end with these traits refuses the tensor, apart from its type and shape. Empty: it does not.
std::string refusal_of(const at::Tensor& tensor, const Traits& traits) {
  if (!tensor.defined()) return "";
  if (tensor.layout() != at::kStrided) return text::concat(" (layout ", tensor.layout(), ")");
  return traits.carries(tensor.device()) ? "" : text::concat(" (on ", tensor.device().type(), ")");
}

std::string refusal_of_result(const at::Tensor& tensor, const Traits& traits) {
  const bool is_recorded = tensor.defined() && tensor.requires_grad() && c10::GradMode::is_enabled();
  return refusal_of(tensor, traits) + (is_recorded ? " (the result requires a gradient)" : "");
}

}  // namespace

std::vector<at::Tensor> CheckedCommunicator::Call::tensors() const {
  if (list != nullptr) return *list;
  std::vector<at::Tensor> all;
  for (const auto* one : {first, second}) {
    if (one != nullptr) all.push_back(*one);
  }
  return all;
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
  description += call.refusal;
  if (call.number)
    description += text::concat(call.first || call.list ? " from rank " : " of elements: ", *call.number);
  return description;
}

void CheckedCommunicator::compare(const Call& call) const {
  auto hash = core::hash(call.refusal, core::hash(call.detail, core::hash(call.verb)));
  hash = core::mix(hash, static_cast<std::uint64_t>(call.number.value_or(-1)));
  std::uint64_t shapes = 0;
  for (const auto& tensor : call.tensors()) {
    hash = mix_kind(hash, tensor);
    shapes = mix_shape(shapes, tensor);
  }
  comparison_->compare({.verb = call.verb, .hash = hash, .shapes = shapes, .text = [&] { return describe(call); }});
}

Work CheckedCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  compare({.verb = "all_reduce",
           .detail = comm::name(op),
           .first = &tensor,
           .refusal = refusal_of_result(tensor, traits())});
  return inner_->all_reduce(std::move(tensor), op);
}

Work CheckedCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  compare({.verb = "reduce_scatter",
           .detail = comm::name(op),
           .first = &input,
           .second = fit(input, output, size()) ? nullptr : &output,
           .refusal = refusal_of(input, traits()) + refusal_of_result(output, traits())});
  return inner_->reduce_scatter(std::move(output), input, op);
}

Work CheckedCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  compare({.verb = "all_gather",
           .first = &input,
           .second = fit(output, input, size()) ? nullptr : &output,
           .refusal = refusal_of(input, traits()) + refusal_of_result(output, traits())});
  return inner_->all_gather(std::move(output), input);
}

Work CheckedCommunicator::broadcast(at::Tensor tensor, int root) {
  compare({.verb = "broadcast", .number = root, .first = &tensor, .refusal = refusal_of_result(tensor, traits())});
  return inner_->broadcast(std::move(tensor), root);
}

Work CheckedCommunicator::broadcast_all(std::vector<at::Tensor> tensors, int root) {
  std::string refusal;
  for (const auto& tensor : tensors) refusal += refusal_of_result(tensor, traits());
  compare({.verb = "broadcast_all", .number = root, .list = &tensors, .refusal = std::move(refusal)});
  return inner_->broadcast_all(std::move(tensors), root);
}

// The back end itself compares what the ranks send and expect.
Work CheckedCommunicator::exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) {
  compare({.verb = "exchange"});
  return inner_->exchange(std::move(sent), std::move(received));
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
