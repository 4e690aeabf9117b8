// NodeCommunicator: moves pending operations from stage to stage.
#include <sched.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "comm/shm/communicator.hpp"
#include "comm/shm/node_problem.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

using Verb = NodePost::Verb;

std::uint64_t hash_of(const NodePost& post) {
  auto hash = core::hash(text::concat(static_cast<int>(post.verb), ' ', static_cast<int>(post.op), ' ', post.type, ' ',
                                      post.root, ' ', post.shape.dimensions));
  for (const auto size : post.shape.sizes) hash = core::mix(hash, static_cast<std::uint64_t>(size));
  return hash;
}

}  // namespace

void NodeCommunicator::advance() {
  if (abandoned_ || pending_.empty()) return;
  if (!team_.has_one_node()) start_agreements();
  for (auto& operation : pending_) {
    if (operation.stage == Stage::done) continue;
    if (!check_agreed(operation) || !operation.is_in_window || !advance_own_part(operation)) return;
  }
}

// By number, the same order on all ranks. An operation that is not done does not hold up the agreement on later ones.
void NodeCommunicator::start_agreements() {
  for (auto& operation : pending_) {
    if (operation.stage != Stage::posted) continue;
    if (!team_.board().all_arrived(operation.number)) return;
    const auto post = post_of(operation);
    operation.agreement =
        NodeAgreementPtr(new NodeAgreement(agreements_, {.is_in_window = is_in_window_of_node(operation),
                                                         .is_refused = post.verb == Verb::refused,
                                                         .hash = hash_of(post)}));
    operation.stage = Stage::met;
  }
}

bool NodeCommunicator::check_agreed(Operation& operation) const {
  if (team_.has_one_node()) {
    if (!team_.board().all_arrived(operation.number) || problem_on_node(operation)) return false;
    operation.is_in_window = is_in_window_of_node(operation);
    operation.stage = std::max(operation.stage, Stage::agreed);
    return true;
  }
  if (operation.stage == Stage::posted) return false;
  if (!operation.agreement->is_complete() || !operation.agreement->is_alike()) return false;
  operation.is_in_window = operation.agreement->is_in_window();
  operation.stage = std::max(operation.stage, Stage::agreed);
  return true;
}

void NodeCommunicator::complete(std::uint64_t number) {
  if (abandoned_) team_.board().throw_if_aborted();
  while (!pending_.empty() && pending_.front().number <= number) {
    auto& operation = pending_.front();
    const bool is_agreed = operation.stage == Stage::done || wait_for_agreement(operation);
    if (is_agreed && operation.stage != Stage::done) do_own_part(operation);
    if (is_agreed) team_.board().wait_for_done(operation.number, meanwhile());
    const bool was_packed = operation.target.defined() && !operation.output.is_alias_of(operation.target);
    if (is_agreed && was_packed) operation.target.copy_(operation.output);
    pending_.pop_front();
  }
  if (const auto found = problems_.extract(number)) {
    const auto& problem = found.mapped();
    throw UsageError(problem.problem).on_rank(problem.rank);
  }
}

// Keeps traffic between nodes moving while this rank waits within its node.
std::function<void()> NodeCommunicator::meanwhile() {
  if (team_.has_one_node()) return {};
  return [this] { advance(); };
}

// A collective on which the ranks differ ends on all of them. complete() throws the reason to the caller that waits.
bool NodeCommunicator::wait_for_agreement(Operation& operation) {
  team_.board().wait_for_arrival(operation.number, meanwhile());
  while (!team_.has_one_node() && (advance(), !operation.agreement->is_complete())) sched_yield();
  if (check_agreed(operation)) return true;
  auto problem = team_.has_one_node() ? problem_on_node(operation) : problem_over_nodes(operation);
  problems_.emplace(operation.number, *std::move(problem));
  team_.board().mark_done(operation.number);
  return false;
}

std::optional<NodeProblem> NodeCommunicator::problem_on_node(const Operation& operation) const {
  std::vector<const NodePost*> posts;
  std::vector<int> ranks;
  for (int peer = 0; peer < team_.size(); ++peer) {
    posts.push_back(&team_.board().post_of(peer, operation.number));
    ranks.push_back(comm_.family_rank(team_.board().global_rank(peer)));
  }
  return find_problem(posts, ranks);
}

NodeProblem NodeCommunicator::problem_over_nodes(const Operation& operation) const {
  const auto all = mpi::all_gather(comm_, post_of(operation));
  std::vector<const NodePost*> posts;
  std::vector<int> ranks;
  for (const auto& post : all) {
    ranks.push_back(comm_.family_rank(static_cast<int>(posts.size())));
    posts.push_back(&post);
  }
  return find_problem(posts, ranks).value();
}

bool NodeCommunicator::is_in_window_of_node(const Operation& operation) const {
  if (!operation.position) return false;
  const bool reduces_common_memory = operation.position->segment->is_common && is_reduction(operation.verb);
  if (reduces_common_memory) return false;  // the ranks would overwrite each other's input
  for (int peer = 0; peer < team_.size(); ++peer) {
    const auto& post = team_.board().post_of(peer, operation.number);
    if (post.memory != operation.position->segment->id || post.offset != operation.position->offset) return false;
  }
  return true;
}

}  // namespace hortator::comm
