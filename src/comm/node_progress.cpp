// How a NodeCommunicator's operations come to their end: the ranks meet, agree that they do the same, and do it.
#include <ATen/ops/empty.h>

#include <array>
#include <hortator/error.hpp>

#include "base/hash.hpp"
#include "base/shard.hpp"
#include "base/text.hpp"
#include "comm/call_table.hpp"
#include "comm/element.hpp"
#include "comm/node_communicator.hpp"
#include "comm/node_verdict.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

using Verb = NodePost::Verb;

std::uint64_t hash_of(const NodePost& post) {
  return base::hash(text::concat(static_cast<int>(post.verb), ' ', static_cast<int>(post.op), ' ', post.type, ' ',
                                 post.root, ' ', post.elements));
}

std::byte* data_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

bool is_reduction(Verb verb) { return verb == Verb::all_reduce || verb == Verb::reduce_scatter; }

}  // namespace

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
