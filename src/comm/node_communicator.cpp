#include "comm/node_communicator.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <exception>
#include <hortator/error.hpp>

#include "base/text.hpp"
#include "comm/element.hpp"
#include "comm/node_verdict.hpp"
#include "comm/operands.hpp"

namespace hortator::comm {
namespace {

using Verb = NodePost::Verb;

std::byte* data_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

bool is_reduction(Verb verb) { return verb == Verb::all_reduce || verb == Verb::reduce_scatter; }

}  // namespace

NodeCommunicator::NodeCommunicator(mpi::Communicator comm, std::size_t staging_bytes)
    : comm_(std::move(comm)), team_(comm_, staging_bytes), mpi_(mpi::Communicator::duplicate(comm_.get())) {}

// Who leaves because of an exception tells the others: they must not wait for it.
NodeCommunicator::~NodeCommunicator() {
  if (std::uncaught_exceptions() > 0) team_.board().raise_abort("an exception has ended its work");
}

Work NodeCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  return start([&]() -> Operation {
    check_result(tensor, at::kCPU, "all_reduce", name());
    check_reducible(tensor.scalar_type(), op);
    auto packed = tensor.detach().contiguous();
    return {.verb = Verb::all_reduce, .op = op, .output = packed, .input = packed, .target = tensor.detach()};
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
            .output = output.is_contiguous() ? output.detach() : at::empty(output.sizes(), output.options()),
            .input = input.detach().contiguous(),
            .target = output.detach()};
  });
}

Work NodeCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  return start([&]() -> Operation {
    check_result(output, at::kCPU, "all_gather", name());
    check_operand(input, at::kCPU, "all_gather", name());
    check_parts(output, input, size(), "all_gather");
    return {.verb = Verb::all_gather,
            .output = output.is_contiguous() ? output.detach() : at::empty(output.sizes(), output.options()),
            .input = input.detach().contiguous(),
            .target = output.detach()};
  });
}

Work NodeCommunicator::broadcast(at::Tensor tensor, int root) {
  return start([&]() -> Operation {
    check_result(tensor, at::kCPU, "broadcast", name());
    check_root(root, size());
    auto packed = tensor.detach().contiguous();
    return {.verb = Verb::broadcast, .root = root, .output = packed, .input = packed, .target = tensor.detach()};
  });
}

void NodeCommunicator::barrier() {
  start([]() -> Operation { return {.verb = Verb::barrier}; }).wait();
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

// A rank that cannot take part says why, in its turn, so that all throw.
Work NodeCommunicator::start(const std::function<Operation()>& make) {
  Operation operation;
  try {
    operation = make();
  } catch (const Error& error) {
    operation = {.verb = Verb::refused, .problem = error.what()};
  }
  if (operation.input.defined()) operation.place = place_of(operation);
  if (pending_.size() == NodeBoard::kept) complete(pending_.front().number);
  const auto number = operation.number = team_.board().post(post_of(operation));
  const bool is_refused = operation.verb == Verb::refused;
  pending_.push_back(std::move(operation));
  if (is_refused) complete(number);  // throws
  advance();
  return Work([this, number] { complete(number); });
}

// What peers reach into: the operand of a reduction, the output of a gather.
std::optional<NodePlace> NodeCommunicator::place_of(const Operation& operation) const {
  return team_.window().find(operation.verb == Verb::all_gather ? operation.output : operation.input);
}

NodePost NodeCommunicator::post_of(const Operation& operation) const {
  NodePost post{.verb = operation.verb, .op = operation.op, .root = operation.root};
  if (operation.input.defined()) {
    post.type = static_cast<std::int32_t>(operation.input.scalar_type());
    post.elements = operation.input.numel();
  }
  if (operation.place) {
    post.memory = operation.place->segment->id;
    post.offset = operation.place->offset;
  }
  const auto length = std::min(operation.problem.size(), post.text.size() - 1);
  std::copy_n(operation.problem.begin(), length, post.text.begin());
  return post;
}

void NodeCommunicator::advance() {
  if (!team_.is_alone()) return;
  for (auto& operation : pending_) {
    if (operation.is_shared_out) continue;
    const bool can_go_on = team_.board().all_arrived(operation.number) && !problem_of(operation) &&
                           operation.verb != Verb::barrier && is_in_window(operation);
    if (!can_go_on) return;
    do_share(operation);
  }
}

void NodeCommunicator::complete(std::uint64_t number) {
  while (!pending_.empty() && pending_.front().number <= number) {
    auto operation = std::move(pending_.front());
    pending_.pop_front();
    if (!operation.is_shared_out) {
      team_.board().wait_for_arrival(operation.number);
      if (const auto problem = problem_of(operation)) {
        team_.board().mark_done(operation.number);
        const int culprit = team_.board().name_of(problem->rank);
        throw UsageError({.what = text::concat("rank ", culprit, ": ", problem->what)}).on_rank(culprit);
      }
      do_share(operation);
    }
    team_.board().wait_for_done(operation.number);
    if (operation.target.defined() && !operation.output.is_alias_of(operation.target)) {
      operation.target.copy_(operation.output);
    }
  }
}

std::optional<NodeProblem> NodeCommunicator::problem_of(const Operation& operation) const {
  std::vector<const NodePost*> posts;
  std::vector<int> names;
  for (int peer = 0; peer < team_.size(); ++peer) {
    posts.push_back(&team_.board().post_of(peer, operation.number));
    names.push_back(team_.board().name_of(peer));
  }
  return find_problem(posts, names);
}

bool NodeCommunicator::is_in_window(const Operation& operation) const {
  if (!operation.place) return false;
  const bool would_meet_itself = operation.place->segment->is_common && is_reduction(operation.verb);
  if (would_meet_itself) return false;
  for (int peer = 0; peer < team_.size(); ++peer) {
    const auto& post = team_.board().post_of(peer, operation.number);
    if (post.memory != operation.place->segment->id || post.offset != operation.place->offset) return false;
  }
  return true;
}

// An exception in the middle of it would leave the others waiting.
void NodeCommunicator::do_share(Operation& operation) {
  try {
    if (is_reduction(operation.verb)) {
      reduce(operation);
    } else {
      move(operation);
    }
  } catch (const std::exception& error) {
    team_.board().raise_abort(error.what());
    throw;
  }
  operation.is_shared_out = true;
  team_.board().mark_done(operation.number);
}

void NodeCommunicator::reduce(const Operation& operation) {
  const kernels::Reduction what{.element = element_of(operation.input.scalar_type()),
                                .op = operation.op,
                                .divisor = operation.op == ReduceOp::mean ? size() : 1};
  const auto type = operation.input.scalar_type();
  const auto elements = operation.output.numel();
  const bool in_window = is_in_window(operation);
  if (operation.verb == Verb::all_reduce) {
    if (in_window) return team_.reduce_in_window(*operation.place, elements, type, what);
    return team_.reduce_staged(data_of(operation.output), elements, type, what);
  }
  if (!team_.is_alone()) return mpi_.reduce_scatter(operation.output, operation.input, operation.op).wait();
  if (in_window) return team_.reduce_part_in_window(*operation.place, data_of(operation.output), elements, what);
  team_.reduce_part_staged(data_of(operation.input), data_of(operation.output), elements, what);
}

void NodeCommunicator::move(const Operation& operation) {
  const bool in_window = is_in_window(operation);
  if (operation.verb == Verb::barrier) return team_.is_alone() ? void() : mpi_.barrier();
  if (operation.verb == Verb::all_gather) {
    if (!team_.is_alone()) return mpi_.all_gather(operation.output, operation.input).wait();
    if (in_window) return team_.gather_in_window(*operation.place, data_of(operation.input), operation.input.nbytes());
    return team_.gather_staged(data_of(operation.output), data_of(operation.input), operation.input.nbytes());
  }
  if (!team_.is_alone()) return mpi_.broadcast(operation.output, operation.root).wait();
  if (in_window) return team_.broadcast_in_window(*operation.place, operation.output.nbytes(), operation.root);
  team_.broadcast_staged(data_of(operation.output), operation.output.nbytes(), operation.root);
}

}  // namespace hortator::comm
