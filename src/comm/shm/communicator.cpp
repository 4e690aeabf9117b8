#include "comm/shm/communicator.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <exception>
#include <hortator/error.hpp>

#include "comm/kernels/element.hpp"
#include "comm/operands.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

using Verb = NodePost::Verb;

// Contiguous bytes that hold the tensor's values. A conjugate or negative view is only a flag on the tensor.
at::Tensor packed(const at::Tensor& tensor) { return tensor.detach().resolve_conj().resolve_neg().contiguous(); }

at::Tensor receiver_of(const at::Tensor& tensor) {
  const bool is_plain = tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
  return is_plain ? tensor.detach() : at::empty(tensor.sizes(), tensor.options());
}

}  // namespace

NodeCommunicator::NodeCommunicator(mpi::Communicator comm, std::size_t staging_bytes)
    : comm_(std::move(comm)),
      team_(comm_, staging_bytes),
      mpi_(mpi::Communicator::duplicate(comm_.get())),
      agreements_(team_.has_one_node()
                      ? nullptr
                      : std::make_shared<mpi::Communicator>(mpi::Communicator::duplicate(comm_.get()))) {}

// A rank that leaves in the middle of a collective publishes it, so that the others do not wait for it.
NodeCommunicator::~NodeCommunicator() {
  if (std::uncaught_exceptions() > 0 || !pending_.empty()) team_.board().raise_abort("an exception has ended its work");
  if (pending_.empty() || team_.has_one_node()) return;
  team_.keep_peer_groups();
  new std::shared_ptr<const mpi::Communicator>(agreements_);
}

Work NodeCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  return start([&]() -> Operation {
    check_result(tensor, at::kCPU, "all_reduce", name());
    check_reducible(tensor.scalar_type(), op);
    auto data = packed(tensor);
    return {.verb = Verb::all_reduce, .op = op, .output = data, .input = data, .target = tensor.detach()};
  });
}

Work NodeCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  return start([&]() -> Operation {
    check_result(output, at::kCPU, "reduce_scatter", name());
    check_operand(input, at::kCPU, "reduce_scatter", name());
    check_reducible(input.scalar_type(), op);
    check_parts(input, output, size(), "reduce_scatter");
    return {.verb = Verb::reduce_scatter,
            .op = op,
            .output = receiver_of(output),
            .input = packed(input),
            .target = output.detach()};
  });
}

Work NodeCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  return start([&]() -> Operation {
    check_result(output, at::kCPU, "all_gather", name());
    check_operand(input, at::kCPU, "all_gather", name());
    check_parts(output, input, size(), "all_gather");
    return {.verb = Verb::all_gather, .output = receiver_of(output), .input = packed(input), .target = output.detach()};
  });
}

Work NodeCommunicator::broadcast(at::Tensor tensor, int root) {
  return start([&]() -> Operation {
    check_result(tensor, at::kCPU, "broadcast", name());
    check_root(root, size());
    auto data = packed(tensor);
    return {.verb = Verb::broadcast, .root = root, .output = data, .input = data, .target = tensor.detach()};
  });
}

// Starts all of them before it waits for the first.
Work NodeCommunicator::broadcast_all(std::vector<at::Tensor> tensors, int root) {
  auto works = std::make_shared<std::vector<Work>>();
  for (auto& tensor : tensors) works->push_back(broadcast(std::move(tensor), root));
  return Work([works] {
    for (auto& work : *works) work.wait();
  });
}

Work NodeCommunicator::exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) {
  return start([&]() -> Operation {
    check_exchange(sent, received, at::kCPU, size(), name());
    return {.verb = Verb::exchange, .sent = std::move(sent), .received = std::move(received)};
  });
}

void NodeCommunicator::barrier() {
  start([]() -> Operation { return {.verb = Verb::barrier}; }).wait();
}

// Ranks of other nodes may wait in MPI, which cannot be interrupted.
bool NodeCommunicator::abandon(std::string_view reason) noexcept {
  team_.board().raise_abort(reason);
  abandoned_ = true;
  return team_.has_one_node();
}

at::Tensor NodeCommunicator::allocate(std::int64_t elements, at::ScalarType type) {
  return team_.window().allocate(elements, type);
}

at::Tensor NodeCommunicator::allocate_common(std::int64_t elements, at::ScalarType type) {
  return team_.window().allocate_common(elements, type);
}

std::unique_ptr<Communicator> NodeCommunicator::split(int color, int key) const {
  return std::make_unique<NodeCommunicator>(comm_.split(color, key));
}

Work NodeCommunicator::start(const std::function<Operation()>& make) {
  Operation operation;
  try {
    operation = make();
    if (operation.input.defined()) operation.position = position_of(operation);
  } catch (const c10::Error& error) {
    operation = {.verb = Verb::refused, .problem = error.what_without_backtrace()};
  } catch (const std::exception& error) {
    operation = {.verb = Verb::refused, .problem = error.what()};
  }
  if (pending_.size() == NodeBoard::kept) complete(pending_.front().number);
  const auto number = operation.number = team_.board().post(post_of(operation));
  const bool is_refused = operation.verb == Verb::refused;
  pending_.push_back(std::move(operation));
  if (is_refused) complete(number);  // throws
  advance();
  return Work([this, number] { complete(number); });
}

// Peers access the input of a reduction or broadcast and the output of a gather.
std::optional<WindowPosition> NodeCommunicator::position_of(const Operation& operation) const {
  return team_.window().find(operation.verb == Verb::all_gather ? operation.output : operation.input);
}

NodePost NodeCommunicator::post_of(const Operation& operation) const {
  NodePost post{.verb = operation.verb, .op = operation.op, .root = operation.root};
  if (operation.input.defined()) {
    post.type = static_cast<std::int32_t>(operation.input.scalar_type());
    post.shape = shape_of(operation.input);
  }
  if (operation.position) {
    post.memory = operation.position->segment->id;
    post.offset = operation.position->offset;
  }
  const auto length = std::min(operation.problem.size(), post.text.size() - 1);
  std::copy_n(operation.problem.begin(), length, post.text.begin());
  return post;
}

}  // namespace hortator::comm
