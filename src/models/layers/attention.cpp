#include "models/layers/attention.hpp"

#include <ATen/ATen.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "runtime/sequence/divided_sequence.hpp"

namespace hortator::models {
namespace {

void require_shape(const at::Tensor& attention_mask, std::int64_t keys) {
  if (attention_mask.dim() == 2 && attention_mask.size(1) == keys) return;
  throw UsageError({.what = text::concat("attention_mask has the shape ", attention_mask.sizes()),
                    .hint = text::concat("expected [batch, ", keys, "]: all tokens, those in the cache included")});
}

void require_documents(const at::Tensor& documents, std::int64_t queries, std::int64_t keys) {
  if (documents.dim() == 2 && documents.size(1) == keys && queries == keys) return;
  throw UsageError({.what = text::concat("document_ids has the shape ", documents.sizes()),
                    .hint = text::concat("expected [batch, ", queries, "], without a cache")});
}

/// Whether each row of [batch, time] has one number only.
bool is_constant(const at::Tensor& rows) { return rows.eq(rows.narrow(1, 0, 1)).all().item<bool>(); }

at::Tensor key_mask(const at::Tensor& attention_mask) { return attention_mask.to(at::kBool).unsqueeze(1).unsqueeze(1); }

// A rank's queries see the tokens of all ranks, whose padding and documents it learns from them: what is decided from
// whole rows is decided alike on all ranks.
AttentionMask causal_mask_of_divided(const runtime::DividedSequence& sequence, const CausalMask& shape,
                                     const at::Tensor& attention_mask, c10::Device device) {
  if (attention_mask.defined()) require_shape(attention_mask, sequence.own());
  if (shape.documents.defined()) require_documents(shape.documents, sequence.own(), sequence.own());
  const auto mask = attention_mask.defined() ? sequence.whole(attention_mask.to(at::kLong)) : at::Tensor();
  const auto documents = shape.documents.defined() ? sequence.whole(shape.documents) : at::Tensor();
  const bool has_padding = mask.defined() && !mask.to(at::kBool).all().item<bool>();
  const bool has_documents = documents.defined() && !is_constant(documents);
  const bool is_windowed = shape.window && *shape.window < sequence.length;
  if (!has_padding && !has_documents && !is_windowed) return {.is_causal = true};
  const auto key = at::arange(sequence.length, at::TensorOptions(device).dtype(at::kLong));
  const auto distance = sequence.positions.to(device).unsqueeze(1) - key;  // [own, length]
  auto allowed = distance.ge(0);
  if (is_windowed) allowed = allowed.logical_and(distance.lt(*shape.window));
  allowed = allowed.unsqueeze(0).unsqueeze(0);
  if (has_documents) {
    const auto is_same = shape.documents.unsqueeze(2).eq(documents.unsqueeze(1));
    allowed = allowed.logical_and(is_same.unsqueeze(1));
  }
  if (has_padding) allowed = allowed.logical_and(key_mask(mask)).logical_or(distance.eq(0));
  return {.allowed = allowed};
}

}  // namespace

AttentionMask causal_mask(const CausalMask& shape, const at::Tensor& attention_mask, c10::Device device) {
  if (const auto sequence = runtime::divided_sequence())
    return causal_mask_of_divided(*sequence, shape, attention_mask, device);
  const auto& [queries, keys, window, documents] = shape;
  if (attention_mask.defined()) require_shape(attention_mask, keys);
  if (documents.defined()) require_documents(documents, queries, keys);
  const bool has_padding = attention_mask.defined() && !attention_mask.to(at::kBool).all().item<bool>();
  const bool is_windowed = window && *window < keys;
  const bool has_documents = documents.defined() && !is_constant(documents);
  if (!has_padding && !is_windowed && !has_documents) {
    if (queries == 1) return {};
    if (queries == keys) return {.is_causal = true};
  }
  const auto key = at::arange(keys, at::TensorOptions(device).dtype(at::kLong));
  const auto distance = key.narrow(0, keys - queries, queries).unsqueeze(1) - key;  // [queries, keys]
  auto allowed = distance.ge(0);
  if (is_windowed) allowed = allowed.logical_and(distance.lt(*window));
  allowed = allowed.unsqueeze(0).unsqueeze(0);
  if (has_documents) {
    const auto is_same = documents.unsqueeze(2).eq(documents.unsqueeze(1));
    allowed = allowed.logical_and(is_same.unsqueeze(1));
  }
  if (has_padding) allowed = allowed.logical_and(key_mask(attention_mask)).logical_or(distance.eq(0));
  return {.allowed = allowed};
}

AttentionMask padding_mask(const at::Tensor& attention_mask) {
  if (!attention_mask.defined()) return {};
  const auto is_token = attention_mask.to(at::kBool);
  if (!runtime::divided_sequence() && is_token.all().item<bool>()) return {};  // other ranks may have padding
  return {.allowed = key_mask(attention_mask)};
}

at::Tensor attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                     const AttentionMask& mask, const AttentionScale& scale) {
  const auto allowed = mask.allowed.defined() ? std::optional(mask.allowed) : std::nullopt;
  const auto mixed = [&](const at::Tensor& asked) {
    return at::scaled_dot_product_attention(asked, keys, values, allowed, scale.dropout, mask.is_causal, scale.scale,
                                            /*enable_gqa=*/asked.size(1) != keys.size(1));
  };
  const auto key_heads = keys.size(1);
  // Groups of heads may be smaller than the part of a rank, which then needs only some of the keys.
  const bool crosses_ranks = interception::carries_divided_key(queries) && !interception::carries_divided_key(keys);
  if (queries.size(2) > 1 || queries.size(1) == key_heads || crosses_ranks)
    return mixed(queries).transpose(1, 2).flatten(2);
  // One token: the heads that share a key become queries of one head, so that keys are not repeated for each.
  const auto grouped = queries.reshape({queries.size(0), key_heads, queries.size(1) / key_heads, queries.size(3)});
  return mixed(grouped).reshape({queries.size(0), 1, -1});
}

at::Tensor split_heads(const at::Tensor& x, std::int64_t width) { return x.unflatten(-1, {-1, width}).transpose(1, 2); }

}  // namespace hortator::models
