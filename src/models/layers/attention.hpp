#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace hortator::models {

/// Which keys each query may see.
struct AttentionMask {
  at::Tensor allowed = {};  ///< bool, [batch or 1, 1, queries, keys]; undefined: all keys, or the causal ones
  bool is_causal = false;   ///< with as many queries as keys, and no `allowed`
};

/// What decides about a causal mask.
struct CausalMask {
  std::int64_t queries = 0;                 ///< the last of the keys
  std::int64_t keys = 0;                    ///< tokens in all
  std::optional<std::int64_t> window = {};  ///< a query sees that many keys, its own included
  at::Tensor documents = {};                ///< [batch, keys] or undefined: a query sees keys of its own document only
};

/// Each query sees its own key and earlier ones that are not padding. `attention_mask` is [batch, keys] or undefined.
/// Queries that are padding see themselves, so that their rows have values.
AttentionMask causal_mask(const CausalMask& shape, const at::Tensor& attention_mask, c10::Device device);

/// Each query sees all keys that are not padding.
AttentionMask padding_mask(const at::Tensor& attention_mask);

struct AttentionScale {
  double dropout = 0.0;
  std::optional<double> scale = {};  ///< 1 / sqrt(width) by default
};

/// softmax(queries keys^T scale) values, [batch, heads, time, width]. Several heads of queries may share one of keys.
/// Returns [batch, time, heads x width].
at::Tensor attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                     const AttentionMask& mask, const AttentionScale& scale);

/// [batch, time, heads x width] as [batch, heads, time, width].
at::Tensor split_heads(const at::Tensor& x, std::int64_t width);

}  // namespace hortator::models
