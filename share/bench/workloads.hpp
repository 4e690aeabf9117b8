#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hortator::bench {

/// A model whose step is timed.
struct Net : torch::nn::Module {
  virtual at::Tensor forward(const at::Tensor& input) = 0;
};

/// A training task of known size on synthetic data. The same tasks are used to time other frameworks.
struct Workload {
  std::string name;
  std::function<std::shared_ptr<Net>()> make_net;
  std::function<at::Tensor()> make_input;   ///< differs between ranks
  std::function<at::Tensor()> make_target;  ///< differs between ranks
  std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)> loss;
};

/// mlp-small, mlp-comm, mlp-mixed, mlp-big, bert-mini, resnet18-32, gpt-124m
const std::vector<Workload>& workloads();
/// Throws UsageError with the nearest name for an unknown one.
std::vector<const Workload*> workloads_named(const std::vector<std::string>& names);

std::shared_ptr<Net> make_bert_mini();
std::shared_ptr<Net> make_resnet18();
std::shared_ptr<Net> make_gpt();  ///< GPT-2 with 124 million parameters, for 1024 tokens

}  // namespace hortator::bench
