#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hortator::tools::bench {

/// A model whose step is timed.
struct Net : torch::nn::Module {
  virtual at::Tensor forward(const at::Tensor& input) = 0;
};

/// A training task of known size, on data made once. The same as other frameworks are timed with.
struct Workload {
  std::string name;
  std::function<std::shared_ptr<Net>()> make_net;
  std::function<at::Tensor()> make_input;   ///< another one on each rank
  std::function<at::Tensor()> make_target;  ///< another one on each rank
  std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)> loss;
};

/// mlp-small, mlp-comm, mlp-mixed, mlp-big, bert-mini, resnet18-32, gpt-124m
const std::vector<Workload>& workloads();
/// UsageError, with the nearest name, for one that there is not.
std::vector<const Workload*> workloads_named(const std::vector<std::string>& names);

std::shared_ptr<Net> make_bert_mini();
std::shared_ptr<Net> make_resnet18();
std::shared_ptr<Net> make_gpt();  ///< as GPT-2 of 124 million parameters, for 1024 words

}  // namespace hortator::tools::bench
