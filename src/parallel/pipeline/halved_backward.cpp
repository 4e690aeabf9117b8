#include "parallel/pipeline/halved_backward.hpp"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

namespace hortator::parallel {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

variable_list run(const edge_list& roots, const variable_list& gradients, bool keeps_graph, const edge_list& outputs) {
  const bool accumulates = outputs.empty();
  return torch::autograd::Engine::get_default_engine().execute(roots, gradients, keeps_graph, /*create_graph=*/false,
                                                               accumulates, outputs);
}

std::atomic<int> first_halves = 0;

struct FirstHalf {
  FirstHalf() { ++first_halves; }
  ~FirstHalf() { --first_halves; }
  FirstHalf(const FirstHalf&) = delete;
  FirstHalf& operator=(const FirstHalf&) = delete;
};

/// Frees what a node has saved when it has run: the second half does not come to it.
class ReleaseAfter final : public torch::autograd::FunctionPostHook {
 public:
  explicit ReleaseAfter(Node* node) : node_(node) {}
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    node_->release_variables();
    return outputs;
  }

 private:
  Node* node_;
};

/// Where a backward pass begins.
struct Starts {
  edge_list edges = {};
  variable_list gradients = {};

  void add(Edge edge, at::Tensor gradient) {
    if (!gradient.defined()) return;
    edges.push_back(std::move(edge));
    gradients.push_back(std::move(gradient));
  }
};

/// The nodes of a graph from which its inputs can be reached.
class Upstream {
 public:
  Upstream(const edge_list& roots, const edge_list& inputs) {
    for (const auto& input : inputs) leads_[input.function.get()] = true;
    for (const auto& root : roots) search(root.function.get());
  }

  bool has(const Edge& edge) const { return edge.is_valid() && leads_.at(edge.function.get()); }
  /// Nodes that compute gradients for both halves.
  std::vector<Node*> border() const { return leading_nodes(/*to_both=*/true); }
  /// Nodes that compute gradients for the first half only.
  std::vector<Node*> inner() const { return leading_nodes(/*to_both=*/false); }

 private:
  std::vector<Node*> leading_nodes(bool to_both) const {
    std::vector<Node*> found;
    for (auto* node : order_) {
      const auto is_other = [this](const Edge& edge) { return edge.is_valid() && !has(edge); };
      if (leads_.at(node) && std::ranges::any_of(node->next_edges(), is_other) == to_both) found.push_back(node);
    }
    return found;
  }
  struct Visit {
    Node* node;
    std::size_t next;
  };
  /// Depth first, without recursion: graphs are deep.
  void search(Node* root) {
    if (leads_.contains(root)) return;
    std::vector<Visit> path = {enter(root)};
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next == node->num_outputs()) {
        leave(path);
        continue;
      }
      auto* child = node->next_edge(next++).function.get();
      if (child == nullptr) continue;
      const auto known = leads_.find(child);
      if (known == leads_.end()) {
        path.push_back(enter(child));
      } else if (known->second) {
        leads_[node] = true;
      }
    }
  }
  Visit enter(Node* node) {
    leads_[node] = false;
    order_.push_back(node);
    return {.node = node, .next = 0};
  }
  void leave(std::vector<Visit>& path) {
    const bool leads = leads_.at(path.back().node);
    path.pop_back();
    if (leads && !path.empty()) leads_[path.back().node] = true;
  }

  std::unordered_map<const Node*, bool> leads_;
  std::vector<Node*> order_;
};

bool has_hooks(Node* node) {
  return !node->pre_hooks().empty() || !node->tensor_pre_hooks().empty() || !node->post_hooks().empty() ||
         !node->retains_grad_hooks().empty();
}

/// Cuts nodes from the first half, so that the second one does not compute it again.
void cut(const std::vector<Node*>& border, const Upstream& upstream) {
  for (auto* node : border) {
    for (auto& edge : node->next_edges()) {
      if (upstream.has(edge)) edge = Edge();
    }
  }
}

}  // namespace

HalvedBackward::HalvedBackward(const std::vector<at::Tensor>& results, const std::vector<at::Tensor>& gradients,
                               const std::vector<at::Tensor>& inputs)
    : input_gradients_(inputs.size()) {
  Starts all, first, second;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].requires_grad()) all.add(torch::autograd::impl::gradient_edge(results[i]), gradients.at(i));
  }
  edge_list wanted;
  std::vector<std::size_t> places;  // in `inputs`, of the first of them
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    wanted.push_back(torch::autograd::impl::gradient_edge(inputs[i]));
    places.push_back(i);
  }
  const Upstream upstream(all.edges, wanted);
  for (std::size_t i = 0; i < all.edges.size(); ++i)
    (upstream.has(all.edges[i]) ? first : second).add(all.edges[i], all.gradients[i]);
  if (!first.edges.empty()) {
    const auto border = upstream.border();
    if (std::ranges::any_of(border, has_hooks)) {
      run(all.edges, all.gradients, /*keeps_graph=*/false, {});
      for (const auto place : places) input_gradients_[place] = inputs[place].grad();
      is_whole_ = true;
      return;
    }
    for (auto* node : border) {
      for (std::uint32_t i = 0; i < node->num_inputs(); ++i) wanted.emplace_back(node->getptr(), i);
    }
    for (auto* node : upstream.inner()) node->add_post_hook(std::make_unique<ReleaseAfter>(node));
    const FirstHalf running;
    const auto found = run(first.edges, first.gradients, /*keeps_graph=*/true, wanted);
    for (std::size_t i = 0; i < places.size(); ++i) input_gradients_[places[i]] = found[i];
    for (std::size_t i = places.size(); i < found.size(); ++i) second.add(wanted[i], found[i]);
    cut(border, upstream);
  }
  edges_ = std::move(second.edges);
  starts_ = std::move(second.gradients);
}

bool runs_first_half() { return first_halves > 0; }

void HalvedBackward::add_other_gradients() {
  const auto edges = std::exchange(edges_, {});
  const auto starts = std::exchange(starts_, {});
  if (!edges.empty()) run(edges, starts, /*keeps_graph=*/false, {});
}

}  // namespace hortator::parallel
