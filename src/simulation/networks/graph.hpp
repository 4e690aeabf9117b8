#pragma once

#include <torch/nn/modules/linear.h>

#include <vector>

#include "simulation/networks/activation.hpp"
#include "simulation/networks/network.hpp"
#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// One round of messages along edges: each node takes up what the nodes at its incoming edges send.
class MessageRoundImpl : public torch::nn::Module {
 public:
  MessageRoundImpl(std::int64_t width, std::int64_t edge_features);
  /// The messages of edges from `senders` to `receivers`, [edges, width], before their activation.
  at::Tensor messages(const at::Tensor& senders, const at::Tensor& receivers, const at::Tensor& features);
  /// The change of nodes that hold `nodes` and receive `messages`, [nodes, width], before its activation.
  at::Tensor change(const at::Tensor& nodes, const at::Tensor& messages);

 private:
  torch::nn::Linear message_{nullptr};
  torch::nn::Linear update_{nullptr};
};
TORCH_MODULE(MessageRound);

/// Message passing on a graph. Inputs: nodes [nodes, features] and edges [2, edges], the numbers of the sending and of
/// the receiving node; with edge_features a third, [edges, features]. With a batch dimension in front of all of them,
/// each sample has a graph of its own. The output is one row a node.
class GraphNetwork : public Network {
 public:
  /// Keys: in_features, out_features, edge_features, width, depth, activation, aggregation (mean or sum), first_node
  /// (0, or 1 as in Fortran).
  explicit GraphNetwork(const Section& section);

  Tensors forward(const Tensors& inputs) override;

 private:
  void check(const Tensors& inputs) const;
  at::Tensor compute(const at::Tensor& nodes, const at::Tensor& edges, const at::Tensor& features);

  std::int64_t inputs_;
  std::int64_t edge_features_;
  std::int64_t first_node_;
  bool takes_mean_;
  Activation activation_;
  torch::nn::Linear lift_{nullptr};
  std::vector<MessageRound> rounds_ = {};
  torch::nn::Linear last_{nullptr};
};

}  // namespace hortator::simulation
