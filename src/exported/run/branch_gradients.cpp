#include "exported/run/branch_gradients.hpp"

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

namespace hortator::exported {
namespace {

namespace autograd = torch::autograd;

/// Passes the gradients of results on, and gives zeros to operands that were not used.
class JointGradients final : public autograd::Node {
 public:
  JointGradients(std::vector<at::Tensor> unused, autograd::edge_list&& edges)
      : Node(std::move(edges)), unused_(std::move(unused)) {}

  autograd::variable_list apply(autograd::variable_list&& gradients) override {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) gradients[i] = input_metadata(i).zeros_like();
    }
    for (const auto& one : unused_) gradients.push_back(at::zeros_like(one));
    return std::move(gradients);
  }
  std::string name() const override { return "hortator::Condition"; }

 private:
  std::vector<at::Tensor> unused_;  ///< for their shapes
};

// LibTorch before 2.15 holds nodes in shared_ptr.
using NodePointer = decltype(autograd::Edge::function);

template <typename Pointer>
Pointer make_node(std::vector<at::Tensor> unused, autograd::edge_list&& edges) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<autograd::Node>>) {
    return std::make_shared<JointGradients>(std::move(unused), std::move(edges));
  } else {
    return c10::make_intrusive<JointGradients>(std::move(unused), std::move(edges));
  }
}

bool learns(const c10::IValue& value) { return value.isTensor() && value.toTensor().requires_grad(); }

bool has_gradient(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() &&
         autograd::isDifferentiableType(value.toTensor().scalar_type());
}

/// A result that may get another history: neither an operand nor a part of another tensor.
at::Tensor own_result(const at::Tensor& result) {
  return result.is_leaf() || result.is_view() ? result.clone() : result;
}

}  // namespace

std::vector<bool> unused_inputs(const Graph& graph) {
  std::set<std::string> used;
  const auto note = [&](const std::string& name) { used.insert(name); };
  for (const auto& node : graph.nodes) {
    for (const auto& input : node.inputs) each_reference(input.value, note);
  }
  for (const auto& output : graph.outputs) each_reference(output, note);
  std::vector<bool> unused;
  for (const auto& input : graph.inputs) {
    bool is_used = false;
    each_reference(input, [&](const std::string& name) { is_used = is_used || used.contains(name); });
    unused.push_back(!is_used);
  }
  return unused;
}

void join_gradients(std::vector<c10::IValue>& results, const std::vector<c10::IValue>& operands,
                    const std::vector<bool>& unused) {
  if (!c10::GradMode::is_enabled() || std::ranges::none_of(operands, learns)) return;
  autograd::edge_list edges;
  std::vector<at::Tensor> joint, zeros;
  for (auto& result : results) {
    if (!has_gradient(result)) continue;
    edges.push_back(autograd::impl::gradient_edge(result.toTensor()));
    joint.push_back(own_result(result.toTensor()));
    result = joint.back();
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!unused[i] || !learns(operands[i])) continue;
    edges.push_back(autograd::impl::gradient_edge(operands[i].toTensor()));
    zeros.push_back(operands[i].toTensor().detach());
  }
  NodePointer node = make_node<NodePointer>(std::move(zeros), std::move(edges));
  for (const auto& one : joint) {
    const auto number = node->add_input_metadata(one);
    autograd::impl::set_gradient_edge(one, autograd::Edge(node, number));
  }
}

}  // namespace hortator::exported
