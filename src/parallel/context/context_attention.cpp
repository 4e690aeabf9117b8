#include "parallel/context/context_attention.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "parallel/context/divided_sequence.hpp"

namespace hortator::parallel {
namespace {

void require_parts(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values, std::int64_t own) {
  for (const auto* tensor : {&queries, &keys, &values}) {
    if (tensor->dim() >= 2 && tensor->size(-2) == own) continue;
    throw UsageError(
        {.what = text::concat("Attention over a divided sequence got a tensor of sizes [", text::join(tensor->sizes()),
                              "], where this rank has ", text::count(own, "token")),
         .why = "queries, keys and values must be those of the sequence that was divided",
         .hint = "compute attention to other sequences, or with a cache of keys, outside of context parallelism"});
  }
}

[[noreturn]] void refuse_mask(const at::Tensor& mask, std::int64_t own, std::int64_t all) {
  throw UsageError(
      {.what = text::concat("Attention over a divided sequence got a mask of sizes [", text::join(mask.sizes()),
                            "], where this rank has ", own, " of ", text::count(all, "token")),
       .why =
           "its last dimension must run along the keys of the whole sequence, since queries see those of other ranks",
       .hint =
           "pass is_causal, a mask of the keys only ([batch, 1, 1, tokens of this rank]), or one whose last size is "
           "that of the whole sequence; hortator::parallel::sequence_positions() gives this rank's positions"});
}

// The mask's rows of this rank, for all keys.
at::Tensor own_mask(const at::Tensor& mask, const SequenceLayout& layout, comm::Communicator& over) {
  const auto own = layout.size(over.rank());
  const auto all = layout.length();
  if (mask.dim() < 2) refuse_mask(mask, own, all);
  const auto rows = mask.size(-2);
  const auto columns = mask.size(-1);
  const bool is_of_keys = rows == 1 && columns == own && own != all;
  if (columns != all && columns != 1 && !is_of_keys) refuse_mask(mask, own, all);
  if (rows != own && rows != all && rows != 1) refuse_mask(mask, own, all);
  if (is_of_keys) return gather_sequence(mask, -1, layout, over);
  return rows == all && rows != own ? part_of_sequence(mask, -2, layout, over.rank()) : mask;
}

// Which keys before `end` the queries of a range may see.
at::Tensor causal_rows(const core::Range& range, const at::Tensor& like) {
  const auto options = at::TensorOptions().device(like.device()).dtype(at::kLong);
  return at::arange(range.end, options).le(at::arange(range.begin, range.end, options).unsqueeze(1));
}

// A range of queries needs no keys behind it.
at::Tensor causal_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                            const AttentionArguments& how, const std::vector<core::Range>& ranges) {
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const auto& range : ranges) {
    const bool is_first = range.begin == 0;
    const auto mask = is_first ? std::nullopt : std::optional(causal_rows(range, queries));
    parts.push_back(at::scaled_dot_product_attention(
        queries.narrow(-2, begin, range.size()), keys.narrow(-2, 0, range.end), values.narrow(-2, 0, range.end), mask,
        how.dropout, /*is_causal=*/is_first, how.scale, how.groups_heads));
    begin += range.size();
  }
  return at::cat(parts, -2);
}

}  // namespace

at::Tensor context_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                             const AttentionArguments& arguments, const SequenceLayout& layout,
                             comm::Communicator& over) {
  require_parts(queries, keys, values, layout.size(over.rank()));
  if (arguments.mask && arguments.is_causal) {
    throw UsageError({.what = "Attention got a mask together with is_causal",
                      .why = "scaled_dot_product_attention takes one of them",
                      .hint = "make the mask causal, and leave is_causal out"});
  }
  const auto mask = arguments.mask ? std::optional(own_mask(*arguments.mask, layout, over)) : std::nullopt;
  const auto all_keys = gather_sequence(keys, -2, layout, over);
  const auto all_values = gather_sequence(values, -2, layout, over);
  if (arguments.is_causal)
    return causal_attention(queries, all_keys, all_values, arguments, layout.ranges(over.rank()));
  return at::scaled_dot_product_attention(queries, all_keys, all_values, mask, arguments.dropout, /*is_causal=*/false,
                                          arguments.scale, arguments.groups_heads);
}

}  // namespace hortator::parallel
