#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cstdint>

namespace gpt {

struct ModelOptions {
  std::int64_t vocabulary = 256;
  std::int64_t context = 128;  ///< the most tokens that it sees at once
  std::int64_t layers = 4;
  std::int64_t width = 128;  ///< of a token's vector
  std::int64_t heads = 4;
};

/// A causal self-attention over all tokens, then a small network on each of them; both add to what came in.
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const ModelOptions& options);
  at::Tensor forward(at::Tensor x, const at::Tensor& turns);

 private:
  at::Tensor attention(const at::Tensor& x, const at::Tensor& turns);

  std::int64_t heads_;
  torch::nn::LayerNorm attention_norm_, network_norm_;
  torch::nn::Linear query_key_value_, project_, widen_, narrow_;
};
TORCH_MODULE(Block);

/// A decoder-only transformer: pre-norm, rotary positions, the embedding is the output layer, too.
/// forward: tokens [batch, time] in, scores of the next token [batch, time, vocabulary] out.
class GptImpl : public torch::nn::Module {
 public:
  explicit GptImpl(const ModelOptions& options);
  at::Tensor forward(const at::Tensor& tokens);

  const ModelOptions& options() const { return options_; }
  std::int64_t parameter_count() const;

 private:
  ModelOptions options_;
  torch::nn::Embedding tokens_;
  torch::nn::ModuleList blocks_;
  torch::nn::LayerNorm norm_;
  at::Tensor turns_;  // a buffer: cosine and sine of each position's angles, [2, context, width of a head]
};
TORCH_MODULE(Gpt);

}  // namespace gpt
