#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cstdint>
#include <vector>

namespace gpt {

struct ModelOptions {
  std::int64_t vocabulary = 256;
  std::int64_t context = 128;  ///< maximum number of tokens
  std::int64_t layers = 4;
  std::int64_t width = 128;  ///< of a token's vector
  std::int64_t heads = 4;
};

/// Keys and values of earlier tokens, for each layer: [batch, heads, time, width of a head].
struct Cache {
  struct Layer {
    at::Tensor keys, values;
  };
  std::vector<Layer> layers = {};

  std::int64_t time() const { return layers.empty() || !layers[0].keys.defined() ? 0 : layers[0].keys.size(2); }
};

/// Causal self-attention over all tokens, then a feed-forward network on each; both add to the residual stream.
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const ModelOptions& options);
  at::Tensor forward(at::Tensor x, const at::Tensor& rotations);
  /// For tokens that follow those in `seen`, and are appended to them. `mask`: [batch, 1, time, all].
  at::Tensor forward_cached(at::Tensor x, const at::Tensor& rotations, const at::Tensor& mask, Cache::Layer& seen);

 private:
  struct Heads {
    at::Tensor queries, keys, values;
  };
  Heads heads_of(const at::Tensor& x, const at::Tensor& rotations);
  at::Tensor joined(const at::Tensor& mixed);
  at::Tensor network(const at::Tensor& x);

  std::int64_t heads_;
  torch::nn::LayerNorm attention_norm_, network_norm_;
  torch::nn::Linear query_key_value_, project_, widen_, narrow_;
};
TORCH_MODULE(Block);

/// A decoder-only transformer: pre-norm, rotary position embedding, the output layer tied to the token embedding.
/// forward: from tokens [batch, time] to scores of the next token [batch, time, vocabulary].
class GptImpl : public torch::nn::Module {
 public:
  explicit GptImpl(const ModelOptions& options);
  at::Tensor forward(const at::Tensor& tokens);
  /// Returns the scores of the token after `tokens`, [batch, vocabulary]. `tokens` follow those in `cache` and are
  /// appended to it. The first padding[i] tokens of row i are padding.
  at::Tensor next_token(const at::Tensor& tokens, const at::Tensor& padding, Cache& cache);

  const ModelOptions& options() const { return options_; }
  std::int64_t parameter_count() const;

 private:
  ModelOptions options_;
  torch::nn::Embedding tokens_;
  torch::nn::ModuleList blocks_;
  torch::nn::LayerNorm norm_;
  at::Tensor rotations_;  // a buffer: cosine and sine of each position's angles, [2, context, width of a head]
};
TORCH_MODULE(Gpt);

}  // namespace gpt
