#include "parallel/tensor/gradient_bridge.hpp"

#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "parallel/tensor/divided_tensor.hpp"

namespace hortator::parallel {
namespace {

namespace autograd = torch::autograd;

class Bridge final : public autograd::Node {
 public:
  Bridge(Operand like, autograd::edge_list&& edges)
      : Node(std::move(edges)), division_(*like.division), ranks_(std::move(like.ranks)) {}

  autograd::variable_list apply(autograd::variable_list&& gradients) override {
    if (!gradients[0].defined()) return {at::Tensor()};
    return {part_of_gradient(gradients[0])};
  }
  std::string name() const override { return "hortator::DividedTensor"; }

 private:
  at::Tensor part_of_gradient(const at::Tensor& gradient) const {
    const auto operand = operand_of(gradient);
    if (operand.division == division_) return operand.tensor;
    const PartsOnly here;
    return part_of(operand.whole(), division_, ranks_);
  }

  Division division_;
  SharedRanks ranks_;
};

// LibTorch before 2.15 holds nodes in shared_ptr.
using NodePointer = decltype(autograd::Edge::function);

template <typename Pointer>
Pointer make_node(Operand like, autograd::edge_list&& edges) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<autograd::Node>>) {
    return std::make_shared<Bridge>(std::move(like), std::move(edges));
  } else {
    return c10::make_intrusive<Bridge>(std::move(like), std::move(edges));
  }
}

}  // namespace

const autograd::Node* bridge_to_part(const at::Tensor& tensor, const at::Tensor& part) {
  autograd::edge_list edges;
  edges.push_back(autograd::impl::gradient_edge(part));
  Operand like;
  {
    const at::NoGradGuard no_grad;  // its division only
    like = operand_of(tensor);
  }
  NodePointer node = make_node<NodePointer>(std::move(like), std::move(edges));
  const auto number = node->add_input_metadata(tensor);
  const auto* made = node.get();
  autograd::impl::set_gradient_edge(tensor, autograd::Edge(std::move(node), number));
  return made;
}

bool is_watched(const autograd::Node& bridge) {
  auto& node = const_cast<autograd::Node&>(bridge);  // LibTorch's accessors are not const
  return !node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty();
}

}  // namespace hortator::parallel
