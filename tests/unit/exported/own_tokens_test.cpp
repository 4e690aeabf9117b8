// Graphs that would see a rank's own tokens only, where a sequence is divided over ranks.
#include "exported/run/own_tokens.hpp"

#include "support/catch.hpp"

using namespace hortator::exported;

namespace {

NamedArgument given(const std::string& value) { return {.name = "", .value = {.content = Reference{value}}}; }

Node node(const std::string& target, const std::vector<std::string>& inputs, const std::string& output) {
  Node made{.name = output, .target = target, .outputs = {{.content = Reference{output}}}};
  for (const auto& input : inputs) made.inputs.push_back(given(input));
  return made;
}

const Node size_of_input = node("torch.ops.aten.sym_size.int", {"x"}, "s0");

bool is_found(const Graph& graph, const std::string& name) {
  const auto found = node_on_own_tokens(graph);
  return found && found->find(name) != std::string::npos;
}

}  // namespace

TEST_CASE("work on each token alone, and attention that is intercepted, may see a part of a sequence") {
  const Graph graph{.nodes = {node("torch.ops.aten.linear.default", {"x", "w"}, "hidden"),
                              node("torch.ops.aten.scaled_dot_product_attention.default", {"q", "k", "v"}, "attended"),
                              size_of_input, node("torch.ops.aten.view.default", {"attended", "s0"}, "viewed"),
                              node("torch.ops.aten.arange.default", {"eight"}, "of_a_constant")}};
  CHECK_FALSE(node_on_own_tokens(graph));
}

TEST_CASE("attention in parts, and positions that are counted from a size, are found") {
  CHECK(is_found({.nodes = {node("torch.ops.aten.softmax.int", {"scores"}, "weights")}}, "softmax"));
  CHECK(is_found({.nodes = {node("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default", {"q"}, "a")}},
                 "_scaled_dot_product"));
  CHECK(is_found({.nodes = {size_of_input, node("torch.ops.aten.arange.default", {"s0"}, "positions")}}, "arange"));
  const auto sum = node("_operator.add", {"s0"}, "s1");
  CHECK(
      is_found({.nodes = {size_of_input, sum, node("torch.ops.aten.slice.Tensor", {"table", "s1"}, "rows")}}, "slice"));
}

TEST_CASE("graphs within a graph are looked at as well") {
  auto branch = node("torch.ops.higher_order.cond", {"condition"}, "result");
  branch.inputs.push_back({.name = "",
                           .value = {.content = std::make_shared<const Graph>(
                                         Graph{.nodes = {node("torch.ops.aten.tril.default", {"mask"}, "causal")}})}});
  CHECK(is_found({.nodes = {branch}}, "tril"));
}
