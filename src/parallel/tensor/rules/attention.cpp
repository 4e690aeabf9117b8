// Attention over divided heads: each rank has its heads whole.

#include <ATen/ATen.h>

#include <optional>
#include <utility>

#include "parallel/tensor/divided_random.hpp"
#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

/// The key or value heads that this rank's query heads attend to, from all of them. Nothing if ranks would need parts
/// of a group of query heads that share them unevenly.
std::optional<at::Tensor> shared_heads(const Operand& keys, const Operand& queries) {
  const auto dim = queries.division->dim;
  const auto heads = keys.tensor.size(dim), ranks = std::int64_t{queries.ranks->size()};
  if (heads == 1) return spread(keys.tensor, queries.ranks);
  if (queries.division->blocks != 1) return {};
  if (heads % ranks == 0) return beside(keys, *queries.division, queries.dims(), queries.ranks);
  if (ranks % heads != 0) return {};
  return spread(keys.tensor, queries.ranks).narrow(dim, queries.ranks->index() * heads / ranks, 1);
}

/// Keys or values of this rank's heads. What a layer of all heads has computed from a divided sequence is joined.
std::optional<at::Tensor> heads_for(const Operand& keys, const Operand& queries) {
  if (keys.dims() != queries.dims()) return {};
  if (keys.division == queries.division) return keys.tensor;
  const bool is_divided_by_tokens = keys.is_divided_along(keys.dims() - 2);
  if (keys.is_divided() && !is_divided_by_tokens) return {};
  return shared_heads({.tensor = keys.whole()}, queries);
}

}  // namespace

// scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
bool attention(OperatorCall& call) {
  const auto queries = call.operand(0), mask = call.operand(3);
  if (!queries.is_divided() || queries.division->dim >= queries.dims() - 2) return false;
  const auto keys = heads_for(call.operand(1), queries), values = heads_for(call.operand(2), queries);
  if (!keys || !values) return false;
  std::optional<at::Tensor> own_mask;
  if (mask.tensor.defined()) own_mask = beside(mask, *queries.division, queries.dims(), queries.ranks);
  const auto dropout = call.argument(4).toDouble();
  std::optional<DividedRandom> random;
  if (dropout > 0) random.emplace(queries.tensor.device(), *queries.ranks);
  const bool is_grouped = call.flag(7) && keys->size(-3) != queries.tensor.size(-3);
  auto mixed = at::scaled_dot_product_attention(queries.tensor, *keys, *values, own_mask, dropout, call.flag(5),
                                                call.argument(6).toOptional<double>(), is_grouped);
  call.give_divided(std::move(mixed), *queries.division, queries.ranks);
  return true;
}

}  // namespace hortator::parallel::rules
