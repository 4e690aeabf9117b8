#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hortator::test {

/// The model of tests/tools/python-weights.py.
struct WeightsNetImpl : torch::nn::Module {
  explicit WeightsNetImpl(bool tied = true) {
    embed = register_module("embed", torch::nn::Embedding(6, 4));
    hidden = register_module("hidden", torch::nn::Linear(4, 5));
    norm = register_module("norm", torch::nn::BatchNorm1d(5));
    head = register_module("head", std::make_shared<Head>(tied ? embed->weight : at::zeros({6, 4})));
  }
  struct Head : torch::nn::Module {
    explicit Head(const at::Tensor& weight) { register_parameter("weight", weight); }
  };
  torch::nn::Embedding embed{nullptr};
  torch::nn::Linear hidden{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  std::shared_ptr<Head> head;
};
TORCH_MODULE(WeightsNet);

/// The names of its tensors, in the order of state_dict().
inline std::vector<std::string> names_of_net() {
  return {"embed.weight", "hidden.weight",     "hidden.bias",      "norm.weight",
          "norm.bias",    "norm.running_mean", "norm.running_var", "norm.num_batches_tracked",
          "head.weight"};
}

inline std::map<std::string, at::Tensor> tensors_of_net(const torch::nn::Module& net) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& item : net.named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : net.named_buffers()) tensors[item.key()] = item.value();
  return tensors;
}

/// Fills each tensor with different values, those that the script uses.
inline void fill(const torch::nn::Module& net) {
  const at::NoGradGuard no_grad;
  const auto tensors = tensors_of_net(net);
  int number = 0;
  for (const auto& name : names_of_net()) {
    const auto& tensor = tensors.at(name);
    tensor.copy_((at::arange(tensor.numel()).to(at::kFloat) / 8 + number++).view(tensor.sizes()));
  }
}

inline void clear(const torch::nn::Module& net) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors_of_net(net)) tensor.fill_(77);
}

inline std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

/// The files that the script has written.
inline const std::filesystem::path python = PYTHON_WEIGHTS;

inline WeightsNet filled(bool tied = true) {
  WeightsNet net(tied);
  fill(*net);
  return net;
}

}  // namespace hortator::test
