#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cstdint>
#include <hortator/lora.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hortator::models {

/// Returns the module at a path such as "attention.self" below `root`, with plain modules made in between as needed.
torch::nn::Module& module_at(torch::nn::Module& root, const std::string& path);

/// Registers `child` below `root` at a path such as "attention.self.query".
template <typename Holder>
Holder place(torch::nn::Module& root, const std::string& path, Holder child) {
  const auto point = path.rfind('.');
  if (point == std::string::npos) return root.register_module(path, std::move(child));
  return module_at(root, path.substr(0, point)).register_module(path.substr(point + 1), std::move(child));
}

/// prefix0, prefix1, ...
std::vector<std::string> numbered_names(const std::string& prefix, std::size_t count);

torch::nn::Linear linear(std::int64_t in, std::int64_t out, bool bias = true);
/// Looking up row `padding`, if there is one, gives it no gradient.
torch::nn::Embedding embedding(std::int64_t rows, std::int64_t width, std::optional<std::int64_t> padding = {});
torch::nn::LayerNorm layer_norm(std::int64_t width, double epsilon);

/// x / sqrt(mean(x^2) + epsilon) * weight
class RmsNormImpl : public torch::nn::Module {
 public:
  RmsNormImpl(std::int64_t width, double epsilon);
  at::Tensor forward(const at::Tensor& x) const;

  at::Tensor weight;

 private:
  double epsilon_;
};
TORCH_MODULE(RmsNorm);

/// A linear layer whose weight is stored as [in, out].
class Conv1DImpl : public torch::nn::Module, public HasTransposedWeight {
 public:
  Conv1DImpl(std::int64_t in, std::int64_t out);
  at::Tensor forward(const at::Tensor& x) const;

  at::Tensor weight, bias;
};
TORCH_MODULE(Conv1D);

/// Gives linear layers, experts and embeddings of a module the random weights from which transformers trains: normal
/// with this deviation, zero biases, norms of one.
void initialise_normal(torch::nn::Module& module, double deviation);

}  // namespace hortator::models
