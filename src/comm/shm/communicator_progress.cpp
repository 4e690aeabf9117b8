// How a NodeCommunicator's operations come to their end: the ranks meet, agree that they do the same, and do it.
#include <sched.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "comm/decorators/call_table.hpp"
#include "comm/shm/communicator.hpp"
#include "comm/shm/verdict.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

using Verb = NodePost::Verb;

std::uint64_t hash_of(const NodePost& post) {
  return core::hash(text::concat(static_cast<int>(post.verb), ' ', static_cast<int>(post.op), ' ', post.type, ' ',
                                 post.root, ' ', post.elements));
}

}  // namespace

void NodeCommunicator::advance() {
  if (abandoned_ || pending_.empty()) return;
  if (!team_.is_alone()) ask_other_nodes();
  for (auto& operation : pending_) {
    if (operation.is_shared_out) continue;
    if (!is_agreed(operation) || !operation.is_in_window || !advance_share(operation)) return;
  }
}

// In the order of the numbers. What is under way does not keep those that come after it from being asked about.
void NodeCommunicator::ask_other_nodes() {
  for (auto& operation : pending_) {
    if (operation.agreement) continue;
    if (!team_.board().all_arrived(operation.number)) return;
    const auto post = post_of(operation);
    operation.agreement =
        NodeAgreementPtr(new NodeAgreement(agreements_, {.is_in_window = is_in_window_of_node(operation),
                                                         .is_refused = post.verb == Verb::refused,
                                                         .hash = hash_of(post)}));
  }
}

bool NodeCommunicator::is_agreed(Operation& operation) const {
  if (team_.is_alone()) {
    if (!team_.board().all_arrived(operation.number) || problem_on_node(operation)) return false;
    operation.is_in_window = is_in_window_of_node(operation);
    return true;
  }
  if (!operation.agreement || !operation.agreement->has_come() || !operation.agreement->is_alike()) return false;
  operation.is_in_window = operation.agreement->is_in_window();
  return true;
}

void NodeCommunicator::complete(std::uint64_t number) {
  if (abandoned_) team_.board().throw_if_aborted();
  while (!pending_.empty() && pending_.front().number <= number) {
    auto& operation = pending_.front();
    const bool is_done = operation.is_shared_out || come_together(operation);
    if (is_done && !operation.is_shared_out) do_share(operation);
    if (is_done) team_.board().wait_for_done(operation.number, meanwhile());
    const bool was_packed = operation.target.defined() && !operation.output.is_alias_of(operation.target);
    if (is_done && was_packed) operation.target.copy_(operation.output);
    pending_.pop_front();
  }
  if (const auto found = problems_.extract(number)) {
    const auto& problem = found.mapped();
    throw UsageError({.what = text::concat("rank ", problem.rank, ": ", problem.what)}).on_rank(problem.rank);
  }
}

// What this rank owes other nodes goes on while it waits for its own: MPI may have taken words that it has not sent.
std::function<void()> NodeCommunicator::meanwhile() {
  if (team_.is_alone()) return {};
  return [this] {
    advance();
    mpi::keep_going(comm_);
  };
}

// A collective in which the ranks do not agree is over for all of them; whoever waits for it gets the reason.
bool NodeCommunicator::come_together(Operation& operation) {
  team_.board().wait_for_arrival(operation.number, meanwhile());
  while (!team_.is_alone() && (advance(), !operation.agreement->has_come())) sched_yield();
  if (is_agreed(operation)) return true;
  auto problem = team_.is_alone() ? problem_on_node(operation) : problem_over_nodes(operation);
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

// All ranks know that there is one.
NodeProblem NodeCommunicator::problem_over_nodes(const Operation& operation) const {
  const auto reasons = mpi::all_gather(comm_, std::string_view(operation.problem));
  for (std::size_t rank = 0; rank < reasons.size(); ++rank) {
    if (!reasons[rank].empty()) return {static_cast<int>(rank), reasons[rank]};
  }
  const auto table = tabulate(mpi::all_gather(comm_, comm::describe(post_of(operation))));
  return {table.odd_rank, table.text()};
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

}  // namespace hortator::comm
