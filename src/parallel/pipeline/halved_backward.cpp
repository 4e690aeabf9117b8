#include "parallel/pipeline/halved_backward.hpp"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <unordered_set>
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

/// The nodes of a graph from which its inputs can be reached.
class Upstream {
 public:
  Upstream(const edge_list& roots, const edge_list& inputs) {
    for (const auto& input : inputs) leads_[input.function.get()] = true;
    for (const auto& root : roots) search(root.function.get());
  }

  bool has(const Edge& edge) const { return edge.is_valid() && leads_.at(edge.function.get()); }
  /// Nodes that compute gradients for both halves.
  std::vector<Node*> border() const {
    std::vector<Node*> found;
    for (const auto* node : order_) {
      const auto& next = node->next_edges();
      const auto is_other = [this](const Edge& edge) { return edge.is_valid() && !has(edge); };
      if (leads_.at(node) && std::any_of(next.begin(), next.end(), is_other)) found.push_back(const_cast<Node*>(node));
    }
    return found;
  }

 private:
  struct Visit {
    const Node* node;
    std::size_t next;
  };
  /// Depth first, without recursion: graphs are deep.
  void search(const Node* root) {
    if (leads_.contains(root)) return;
    std::vector<Visit> path = {enter(root)};
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next == node->num_outputs()) {
        const bool leads = leads_.at(node);
        path.pop_back();
        if (leads && !path.empty()) leads_[path.back().node] = true;
        continue;
      }
      const auto* child = node->next_edge(next++).function.get();
      if (child == nullptr) continue;
      const auto known = leads_.find(child);
      if (known == leads_.end()) {
        path.push_back(enter(child));
      } else if (known->second) {
        leads_[node] = true;
      }
    }
  }
  Visit enter(const Node* node) {
    leads_[node] = false;
    order_.push_back(node);
    return {.node = node, .next = 0};
  }

  std::unordered_map<const Node*, bool> leads_;
  std::vector<const Node*> order_;
};

bool has_hooks(Node& node) {
  return !node.pre_hooks().empty() || !node.tensor_pre_hooks().empty() || !node.post_hooks().empty() ||
         !node.retains_grad_hooks().empty();
}

}  // namespace

HalvedBackward::HalvedBackward(const std::vector<at::Tensor>& results, const std::vector<at::Tensor>& gradients,
                               const std::vector<at::Tensor>& inputs) {
  edge_list roots, wanted;
  variable_list starts;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].requires_grad() || !gradients.at(i).defined()) continue;
    roots.push_back(torch::autograd::impl::gradient_edge(results[i]));
    starts.push_back(gradients[i]);
  }
  std::vector<std::size_t> places;
  input_gradients_.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    wanted.push_back(torch::autograd::impl::gradient_edge(inputs[i]));
    places.push_back(i);
  }
  const auto inputs_wanted = wanted.size();
  const Upstream upstream(roots, wanted);
  edge_list first_roots;
  variable_list first_starts;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    if (upstream.has(roots[i])) {
      first_roots.push_back(roots[i]);
      first_starts.push_back(starts[i]);
    } else {
      edges_.push_back(roots[i]);
      starts_.push_back(starts[i]);
    }
  }
  if (first_roots.empty()) return;
  const auto border = upstream.border();
  if (std::any_of(border.begin(), border.end(), [](auto* node) { return has_hooks(*node); })) {
    run(roots, starts, /*keeps_graph=*/false, {});
    edges_.clear();
    starts_.clear();
    for (const auto place : places) input_gradients_[place] = inputs[place].grad();
    return;
  }
  for (auto* node : border) {
    for (std::uint32_t i = 0; i < node->num_inputs(); ++i) wanted.emplace_back(node->getptr(), i);
  }
  const FirstHalf running;
  const auto found = run(first_roots, first_starts, /*keeps_graph=*/true, wanted);
  for (std::size_t i = 0; i < inputs_wanted; ++i) input_gradients_[places[i]] = found[i];
  for (std::size_t i = inputs_wanted; i < found.size(); ++i) {
    if (!found[i].defined()) continue;
    edges_.push_back(wanted[i]);
    starts_.push_back(found[i]);
  }
  // cuts the border from the first half, so that the second one does not compute it again
  for (auto* node : border) {
    for (auto& edge : node->next_edges()) {
      if (upstream.has(edge)) edge = Edge();
    }
  }
}

bool runs_first_half() { return first_halves > 0; }

void HalvedBackward::add_other_gradients() {
  const auto edges = std::exchange(edges_, {});
  const auto starts = std::exchange(starts_, {});
  if (!edges.empty()) run(edges, starts, /*keeps_graph=*/false, {});
}

}  // namespace hortator::parallel
