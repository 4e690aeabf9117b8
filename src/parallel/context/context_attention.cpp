#include "parallel/context/context_attention.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <limits>
#include <vector>

#include "parallel/context/attention_arguments.hpp"
#include "parallel/context/divided_sequence.hpp"
#include "parallel/context/ring_attention.hpp"

namespace hortator::parallel {
namespace {

// The mask's rows of this rank, for all keys. @collective
at::Tensor own_mask(const at::Tensor& mask, const SequenceLayout& layout, comm::Communicator& over) {
  const auto own = layout.size(over.rank());
  const auto all = layout.length();
  if (is_of_own_keys(mask, own, all)) return gather_sequence(mask, -1, layout, over);
  return mask.size(-2) == all && all != own ? part_of_sequence(mask, -2, layout, over.rank()) : mask;
}

// The type in which attention computes.
at::ScalarType score_type(const at::Tensor& queries) {
  const auto device = queries.device().type();
  return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device) : queries.scalar_type();
}

// What is added to the scores of the keys before `end` for the queries of a range.
at::Tensor causal_rows(const core::Range& range, const at::TensorOptions& like) {
  const at::NoGradGuard no_grad;
  return at::full({range.size(), range.end}, -std::numeric_limits<double>::infinity(), like).triu_(range.begin + 1);
}

// The same, one for all layers: backward keeps it, and so it is there when the next layer asks.
at::Tensor shared_causal_rows(const core::Range& range, const at::TensorOptions& like) {
  struct Kept {
    core::Range range;
    c10::weak_intrusive_ptr<c10::TensorImpl> rows;
  };
  thread_local std::vector<Kept> kept;
  std::erase_if(kept, [](const Kept& one) { return one.rows.expired(); });
  for (const auto& one : kept) {
    at::Tensor rows(one.rows.lock());
    if (rows.defined() && one.range == range && rows.dtype() == like.dtype() && rows.device() == like.device())
      return rows;
  }
  auto rows = causal_rows(range, like);
  kept.push_back({.range = range, .rows = c10::weak_intrusive_ptr<c10::TensorImpl>(rows.getIntrusivePtr())});
  return rows;
}

// A range of queries needs no keys behind it.
at::Tensor causal_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                            const AttentionArguments& how, const std::vector<core::Range>& ranges) {
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const auto& range : ranges) {
    const bool is_first = range.begin == 0;
    const auto mask = is_first ? std::nullopt
                               : std::optional(shared_causal_rows(range, queries.options().dtype(score_type(queries))));
    parts.push_back(at::scaled_dot_product_attention(
        queries.narrow(-2, begin, range.size()), keys.narrow(-2, 0, range.end), values.narrow(-2, 0, range.end), mask,
        how.dropout, /*is_causal=*/is_first, how.scale, how.groups_heads));
    begin += range.size();
  }
  return at::cat(parts, -2);
}

// @collective
at::Tensor attention_in_ring(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                             const AttentionArguments& arguments, const SequenceLayout& layout,
                             const RankGroup& group) {
  RingOperands mine{.queries = queries, .keys = keys, .values = values};
  if (arguments.mask) mine.mask = own_mask(*arguments.mask, layout, group.communicator_of(*arguments.mask));
  const auto scale = arguments.scale.value_or(1 / std::sqrt(static_cast<double>(queries.size(-1))));
  return ring_attention(
      mine, {.scores = {.is_causal = arguments.is_causal, .scale = scale}, .layout = layout, .group = group});
}

// @collective
at::Tensor attention_to_gathered(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                                 const AttentionArguments& arguments, const SequenceLayout& layout,
                                 comm::Communicator& over) {
  const auto mask = arguments.mask ? std::optional(own_mask(*arguments.mask, layout, over)) : std::nullopt;
  const auto all_keys = gather_sequence(keys, -2, layout, over);
  const auto all_values = gather_sequence(values, -2, layout, over);
  if (arguments.is_causal)
    return causal_attention(queries, all_keys, all_values, arguments, layout.ranges(over.rank()));
  return at::scaled_dot_product_attention(queries, all_keys, all_values, mask, arguments.dropout, /*is_causal=*/false,
                                          arguments.scale, arguments.groups_heads);
}

}  // namespace

at::Tensor context_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                             const AttentionArguments& arguments, const SequenceLayout& layout,
                             const RankGroup& group) {
  agree_on_attention(queries, keys, values, arguments, layout, group);
  if (arguments.form == ContextAttention::ring)
    return attention_in_ring(queries, keys, values, arguments, layout, group);
  return attention_to_gathered(queries, keys, values, arguments, layout, group.communicator_of(queries));
}

}  // namespace hortator::parallel
