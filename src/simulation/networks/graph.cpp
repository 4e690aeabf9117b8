#include "simulation/networks/graph.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/nn/modules/container/modulelist.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {

MessageRoundImpl::MessageRoundImpl(std::int64_t width, std::int64_t edge_features) {
  message_ = register_module("message", torch::nn::Linear(2 * width + edge_features, width));
  update_ = register_module("update", torch::nn::Linear(2 * width, width));
}

at::Tensor MessageRoundImpl::messages(const at::Tensor& senders, const at::Tensor& receivers,
                                      const at::Tensor& features) {
  std::vector<at::Tensor> all = {senders, receivers};
  if (features.defined()) all.push_back(features);
  return message_(at::cat(all, 1));
}

at::Tensor MessageRoundImpl::change(const at::Tensor& nodes, const at::Tensor& messages) {
  return update_(at::cat({nodes, messages}, 1));
}

GraphNetwork::GraphNetwork(const Section& section)
    : inputs_(section.integer("in_features", 1)),
      edge_features_(section.integer("edge_features", 0, 0)),
      first_node_(section.integer("first_node", 0, 0)),
      takes_mean_(section.choice("aggregation", {"mean", "sum"}, "mean") == "mean"),
      activation_(read_activation(section, "activation", "gelu")) {
  const auto width = section.integer("width", 1, 64);
  lift_ = register_module("lift", torch::nn::Linear(inputs_, width));
  torch::nn::ModuleList list;
  for (auto depth = section.integer("depth", 1, 3); depth > 0; --depth) {
    rounds_.emplace_back(width, edge_features_);
    list->push_back(rounds_.back());
  }
  register_module("rounds", list);
  last_ = register_module("last", torch::nn::Linear(width, section.integer("out_features", 1)));
}

void GraphNetwork::check(const Tensors& inputs) const {
  const std::size_t wanted = edge_features_ > 0 ? 3 : 2;
  if (inputs.size() != wanted) {
    throw UsageError({.what = text::concat("A graph model takes ", wanted, " inputs, the batch has ", inputs.size()),
                      .hint = "bind nodes, edges and, with edge_features, the edges' features as HORTATOR_INPUT"});
  }
  const auto& nodes = inputs[0];
  const auto& edges = inputs[1];
  const auto dims = nodes.dim();
  const bool fits = (dims == 2 || dims == 3) && nodes.size(-1) == inputs_ && edges.dim() == dims &&
                    edges.size(-2) == 2 && (dims == 2 || edges.size(0) == nodes.size(0)) && !edges.is_floating_point();
  const bool has_features = wanted == 2 || (inputs[2].dim() == dims && inputs[2].size(-1) == edge_features_ &&
                                            inputs[2].size(-2) == edges.size(-1));
  if (fits && has_features) return;
  throw UsageError({.what = text::concat("The nodes have the shape ", nodes.sizes(), ", the edges ", edges.sizes()),
                    .why = text::concat("a graph model expects nodes [nodes, ", inputs_,
                                        "] and whole numbers [2, edges] (edge features [edges, ", edge_features_,
                                        "]), or the same with samples in front"),
                    .hint = "bind arrays of these shapes; Fortran's dimensions are reversed: edges(edges, 2)"});
}

// The graphs of a batch are one graph without edges between its parts.
Network::Tensors GraphNetwork::forward(const Tensors& inputs) {
  check(inputs);
  const auto& nodes = inputs[0];
  auto edges = inputs[1].to(at::kLong) - first_node_;
  const auto features = inputs.size() > 2 ? inputs[2] : at::Tensor();
  const auto count = nodes.size(-2);
  if ((edges.numel() > 0) && (edges.min().item<std::int64_t>() < 0 || edges.max().item<std::int64_t>() >= count))
    throw UsageError(
        {.what = text::concat("An edge names a node outside ", first_node_, " to ", count - 1 + first_node_),
         .hint = "set first_node to the number of your first node"});
  if (nodes.dim() == 2) return {compute(nodes, edges, features)};
  const auto shifts = at::arange(nodes.size(0), edges.options()) * count;
  edges = (edges + shifts.view({-1, 1, 1})).transpose(0, 1).reshape({2, -1});
  const auto result = compute(nodes.flatten(0, 1), edges, features.defined() ? features.flatten(0, 1) : features);
  return {result.view({nodes.size(0), count, result.size(1)})};
}

at::Tensor GraphNetwork::compute(const at::Tensor& nodes, const at::Tensor& edges, const at::Tensor& features) {
  const auto from = edges[0];
  const auto to = edges[1];
  auto x = activation_(lift_(nodes));
  at::Tensor shares;  // one over the number of incoming edges
  if (takes_mean_) {
    const auto ones = at::ones({to.size(0)}, x.options());
    shares = at::zeros({x.size(0)}, x.options()).index_add(0, to, ones).clamp_min(1).reciprocal().unsqueeze(1);
  }
  for (auto& round : rounds_) {
    const auto messages = activation_(round->messages(x.index_select(0, from), x.index_select(0, to), features));
    auto received = at::zeros_like(x).index_add(0, to, messages);
    if (takes_mean_) received = received * shares;
    x = x + activation_(round->change(x, received));
  }
  return last_(x);
}

}  // namespace hortator::simulation
