#include "comm/shm/node_problem.hpp"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>

#include "comm/decorators/call_table.hpp"
#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

bool same_call(const NodePost& a, const NodePost& b) {
  return a.verb == b.verb && a.op == b.op && a.type == b.type && a.root == b.root && a.elements == b.elements;
}

}  // namespace

std::string describe(const NodePost& post) {
  constexpr std::array<const char*, 5> verbs = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"};
  std::string verb = verbs[static_cast<std::size_t>(post.verb)];
  if (post.verb == NodePost::Verb::barrier) return verb;
  const auto tensor = text::concat(" of ", post.elements, " x ", static_cast<at::ScalarType>(post.type));
  if (post.verb == NodePost::Verb::broadcast) return text::concat(verb, tensor, " from rank ", post.root);
  if (post.verb == NodePost::Verb::all_gather) return verb + tensor;
  return text::concat(verb, " (", name(post.op), ")", tensor);
}

std::optional<NodeProblem> find_problem(const std::vector<const NodePost*>& posts, const std::vector<int>& ranks) {
  for (std::size_t i = 0; i < posts.size(); ++i) {
    if (posts[i]->verb == NodePost::Verb::refused) return NodeProblem{ranks[i], posts[i]->text.data()};
  }
  const auto alike = [&](const NodePost* post) { return same_call(*posts[0], *post); };
  if (std::all_of(posts.begin(), posts.end(), alike)) return {};
  std::vector<std::string> calls;
  for (const auto* post : posts) calls.push_back(describe(*post));
  const auto table = tabulate(calls, ranks);
  return NodeProblem{table.odd_rank, table.text()};
}

}  // namespace hortator::comm
