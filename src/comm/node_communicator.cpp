#include "comm/node_communicator.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <exception>
#include <hortator/error.hpp>

#include "base/hash.hpp"
#include "base/shard.hpp"
#include "base/text.hpp"
#include "comm/call_table.hpp"
#include "comm/element.hpp"
#include "comm/node_verdict.hpp"
#include "comm/operands.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

using Verb = NodePost::Verb;

// In memory as it reads: a conjugate or negative view is a note on the tensor, which its bytes do not show.
at::Tensor packed(const at::Tensor& tensor) { return tensor.detach().resolve_conj().resolve_neg().contiguous(); }

at::Tensor receiver_of(const at::Tensor& tensor) {
  const bool is_plain = tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
  return is_plain ? tensor.detach() : at::empty(tensor.sizes(), tensor.options());
}

std::uint64_t hash_of(const NodePost& post) {
  return base::hash(text::concat(static_cast<int>(post.verb), ' ', static_cast<int>(post.op), ' ', post.type, ' ',
                                 post.root, ' ', post.elements));
}

std::byte* data_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

bool is_reduction(Verb verb) { return verb == Verb::all_reduce || verb == Verb::reduce_scatter; }

}  // namespace

NodeCommunicator::NodeCommunicator(mpi::Communicator comm, std::size_t staging_bytes)
    : comm_(std::move(comm)), team_(comm_, staging_bytes), mpi_(mpi::Communicator::duplicate(comm_.get())) {}

// Who leaves in the middle tells the others: they must not wait for it.
NodeCommunicator::~NodeCommunicator() {
  if (std::uncaught_exceptions() > 0 || !pending_.empty()) team_.board().raise_abort("an exception has ended its work");
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

// All of them are under way before the first is waited for.
Work NodeCommunicator::broadcast_all(std::vector<at::Tensor> tensors, int root) {
  auto works = std::make_shared<std::vector<Work>>();
  for (auto& tensor : tensors) works->push_back(broadcast(std::move(tensor), root));
  return Work([works] {
    for (auto& work : *works) work.wait();
  });
}

void NodeCommunicator::barrier() {
  start([]() -> Operation { return {.verb = Verb::barrier}; }).wait();
}

// Between nodes the others may wait in MPI.
bool NodeCommunicator::abandon(std::string_view reason) noexcept {
  team_.board().raise_abort(reason);
  abandoned_ = true;
  return team_.is_alone();
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
    if (operation.input.defined()) operation.place = place_of(operation);
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
    if (!team_.board().all_arrived(operation.number) || problem_on_node(operation)) return;
    operation.is_in_window = is_in_window_of_node(operation);
    if (!operation.is_in_window) return;
    do_share(operation);
  }
}

void NodeCommunicator::complete(std::uint64_t number) {
  if (abandoned_) team_.board().throw_if_aborted();
  while (!pending_.empty() && pending_.front().number <= number) {
    auto operation = std::move(pending_.front());
    pending_.pop_front();
    if (!operation.is_shared_out && !come_together(operation)) continue;
    if (!operation.is_shared_out) do_share(operation);
    team_.board().wait_for_done(operation.number);
    const bool was_packed = operation.target.defined() && !operation.output.is_alias_of(operation.target);
    if (was_packed) operation.target.copy_(operation.output);
  }
  if (const auto found = problems_.extract(number)) {
    const auto& problem = found.mapped();
    throw UsageError({.what = text::concat("rank ", problem.rank, ": ", problem.what)}).on_rank(problem.rank);
  }
}

// A collective in which the ranks do not agree is over for all of them; whoever waits for it gets the reason.
bool NodeCommunicator::come_together(Operation& operation) {
  team_.board().wait_for_arrival(operation.number);
  operation.is_in_window = is_in_window_of_node(operation);
  auto problem = team_.is_alone() ? problem_on_node(operation) : problem_over_nodes(operation);
  if (!problem) return true;
  problems_.emplace(operation.number, *std::move(problem));
  team_.board().mark_done(operation.number);
  return false;
}

std::optional<NodeProblem> NodeCommunicator::problem_on_node(const Operation& operation) const {
  std::vector<const NodePost*> posts;
  std::vector<int> names;
  for (int peer = 0; peer < team_.size(); ++peer) {
    posts.push_back(&team_.board().post_of(peer, operation.number));
    names.push_back(team_.board().name_of(peer));
  }
  return find_problem(posts, names);
}

// One reduction when all is well.
std::optional<NodeProblem> NodeCommunicator::problem_over_nodes(Operation& operation) const {
  const auto post = post_of(operation);
  const auto hash = static_cast<std::int64_t>(hash_of(post));
  const bool is_refused = post.verb == Verb::refused;
  std::array<std::int64_t, 4> least = {operation.is_in_window ? 1 : 0, is_refused ? 0 : 1, hash, ~hash};
  mpi::check(MPI_Allreduce(MPI_IN_PLACE, least.data(), 4, MPI_INT64_T, MPI_MIN, comm_.get()), "MPI_Allreduce");
  operation.is_in_window = least[0] == 1;
  if (least[1] == 1 && least[2] == ~least[3]) return {};
  const auto reasons = mpi::all_gather(comm_, std::string_view(operation.problem));
  for (std::size_t rank = 0; rank < reasons.size(); ++rank) {
    if (!reasons[rank].empty()) return NodeProblem{static_cast<int>(rank), reasons[rank]};
  }
  const auto table = tabulate(mpi::all_gather(comm_, comm::describe(post)));
  return NodeProblem{table.odd_rank, table.text()};
}

bool NodeCommunicator::is_in_window_of_node(const Operation& operation) const {
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
  } catch (const Abandoned&) {
    throw;  // somebody else's fault
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
  const bool in_window = operation.is_in_window;
  if (operation.verb == Verb::all_reduce) {
    if (in_window) return team_.reduce_in_window(*operation.place, elements, type, what);
    return team_.reduce_staged(data_of(operation.output), elements, type, what);
  }
  if (!team_.is_alone()) return mpi_.reduce_scatter(operation.output, operation.input, operation.op).wait();
  if (in_window) return team_.reduce_part_in_window(*operation.place, data_of(operation.output), elements, what);
  team_.reduce_part_staged(data_of(operation.input), data_of(operation.output), elements, what);
}

void NodeCommunicator::move(const Operation& operation) {
  const bool in_window = operation.is_in_window;
  if (operation.verb == Verb::barrier) return;  // all have come: that was it
  if (operation.verb == Verb::all_gather) {
    if (!team_.is_alone()) return gather_over_nodes(operation);
    if (in_window) return team_.gather_in_window(*operation.place, data_of(operation.input), operation.input.nbytes());
    return team_.gather_staged(data_of(operation.output), data_of(operation.input), operation.input.nbytes());
  }
  if (!team_.is_alone()) return mpi_.broadcast(operation.output, operation.root).wait();
  if (in_window) return team_.broadcast_in_window(*operation.place, operation.output.nbytes(), operation.root);
  team_.broadcast_staged(data_of(operation.output), operation.output.nbytes(), operation.root);
}

// MPI must not write to memory that several of its ranks share: common memory is filled afterwards, a slice by each.
void NodeCommunicator::gather_over_nodes(const Operation& operation) {
  const bool is_common = operation.place && operation.place->segment->is_common;
  if (!is_common) return mpi_.all_gather(operation.output, operation.input).wait();
  const auto whole = at::empty({operation.output.numel()}, operation.output.options());
  mpi_.all_gather(whole, operation.input).wait();
  team_.board().meet();  // nobody sends from it any more
  const auto mine = shard::balanced(whole.numel(), team_.size(), team_.rank());
  operation.output.view({-1}).narrow(0, mine.begin, mine.size()).copy_(whole.narrow(0, mine.begin, mine.size()));
}

}  // namespace hortator::comm
