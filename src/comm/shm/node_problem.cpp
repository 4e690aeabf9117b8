#include "comm/shm/node_problem.hpp"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>

#include "comm/decorators/call_table.hpp"
#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

constexpr std::array<const char*, 6> verbs = {"all_reduce", "reduce_scatter", "all_gather",
                                              "broadcast",  "exchange",       "barrier"};

bool same_but_shape(const NodePost& a, const NodePost& b) {
  return a.verb == b.verb && a.op == b.op && a.type == b.type && a.root == b.root;
}

std::string text_of(const NodeShape& shape) {
  const auto shown = std::min(static_cast<std::size_t>(shape.dimensions), shape.sizes.size());
  return text::concat('[', text::join(c10::IntArrayRef(shape.sizes.data(), shown)), ']');
}

}  // namespace

NodeShape shape_of(const at::Tensor& tensor) {
  NodeShape shape{.dimensions = static_cast<std::int32_t>(tensor.dim())};
  const auto last = shape.sizes.size() - 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.dim()); ++i) {
    const auto size = tensor.size(static_cast<std::int64_t>(i));
    shape.sizes[std::min(i, last)] = i > last ? shape.sizes[last] * size : size;
  }
  return shape;
}

std::string describe(const NodePost& post) {
  const std::string verb = verbs[static_cast<std::size_t>(post.verb)];
  if (post.verb == NodePost::Verb::barrier || post.verb == NodePost::Verb::exchange) return verb;
  const auto tensor = text::concat(" of ", static_cast<at::ScalarType>(post.type), ' ', text_of(post.shape));
  if (post.verb == NodePost::Verb::broadcast) return text::concat(verb, tensor, " from rank ", post.root);
  if (post.verb == NodePost::Verb::all_gather) return verb + tensor;
  return text::concat(verb, " (", name(post.op), ")", tensor);
}

std::optional<NodeProblem> find_problem(const std::vector<const NodePost*>& posts, const std::vector<int>& ranks) {
  for (std::size_t i = 0; i < posts.size(); ++i) {
    if (posts[i]->verb == NodePost::Verb::refused) return NodeProblem{ranks[i], {.what = posts[i]->text.data()}};
  }
  const auto all = [&](const auto& holds) { return std::all_of(posts.begin(), posts.end(), holds); };
  const bool same_calls = all([&](const NodePost* post) { return same_but_shape(*posts[0], *post); });
  if (same_calls && all([&](const NodePost* post) { return posts[0]->shape == post->shape; })) return {};
  std::vector<std::string> calls;
  for (const auto* post : posts) calls.push_back(describe(*post));
  const auto table = tabulate(calls, ranks);
  const auto* verb = verbs[static_cast<std::size_t>(posts[0]->verb)];
  return NodeProblem{table.odd_rank, same_calls ? different_shapes(table, verb) : different_calls(table)};
}

}  // namespace hortator::comm
