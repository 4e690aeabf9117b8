#include "exported/run/own_tokens.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace hortator::exported {
namespace {

constexpr std::string_view aten = "torch.ops.aten.";

// Attention that was decomposed, its masks, numbers of tokens, and recurrent layers.
constexpr std::array<std::string_view, 10> mixing = {"softmax", "_softmax", "_safe_softmax", "tril",     "triu",
                                                     "cumsum",  "lstm",     "gru",           "rnn_tanh", "rnn_relu"};
// With a size of the inputs: positions that begin at 0 on each rank.
constexpr std::array<std::string_view, 3> counting = {"arange", "slice", "narrow"};

/// "linear" of "torch.ops.aten.linear.default"; empty for what is not an operator of ATen.
std::string_view operator_of(const Node& node) {
  const std::string_view target = node.target;
  if (!target.starts_with(aten)) return {};
  const auto name = target.substr(aten.size());
  return name.substr(0, name.find('.'));
}

bool computes_size(const Node& node) {
  return !node.target.starts_with("torch.ops.") || operator_of(node).starts_with("sym_");
}

bool takes_any_of(const Node& node, const std::set<std::string>& sizes) {
  return std::ranges::any_of(node.inputs, [&](const NamedArgument& input) {
    const auto* reference = std::get_if<Reference>(&input.value.content);
    return reference != nullptr && sizes.contains(reference->name);
  });
}

bool sees_own_tokens(const Node& node, const std::set<std::string>& sizes) {
  const auto name = operator_of(node);
  if (name.starts_with("_scaled_dot_product") || std::ranges::find(mixing, name) != mixing.end()) return true;
  return std::ranges::find(counting, name) != counting.end() && takes_any_of(node, sizes);
}

}  // namespace

std::optional<std::string> node_on_own_tokens(const Graph& graph) {
  std::set<std::string> sizes;
  for (const auto& node : graph.nodes) {
    if (sees_own_tokens(node, sizes)) return node.to_string();
    for (const auto& output : node.outputs) {
      const auto* reference = std::get_if<Reference>(&output.content);
      if (reference != nullptr && computes_size(node)) sizes.insert(reference->name);
    }
    for (const auto& input : node.inputs) {
      const auto* nested = std::get_if<std::shared_ptr<const Graph>>(&input.value.content);
      if (nested == nullptr) continue;
      if (auto found = node_on_own_tokens(**nested)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace hortator::exported
