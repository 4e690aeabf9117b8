#include "parallel/context/context_attention.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <hortator/error.hpp>
#include <limits>
#include <vector>

#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "parallel/context/divided_sequence.hpp"
#include "parallel/context/ring_attention.hpp"

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

bool is_of_own_keys(const at::Tensor& mask, std::int64_t own, std::int64_t all) {
  return mask.size(-2) == 1 && mask.size(-1) == own && own != all;
}

void require_mask(const at::Tensor& mask, std::int64_t own, std::int64_t all) {
  if (mask.dim() < 2) refuse_mask(mask, own, all);
  const auto rows = mask.size(-2);
  const auto columns = mask.size(-1);
  if (columns != all && columns != 1 && !is_of_own_keys(mask, own, all)) refuse_mask(mask, own, all);
  if (rows != own && rows != all && rows != 1) refuse_mask(mask, own, all);
}

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
    const at::Tensor rows(one.rows.lock());
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

// Throws where this rank's arguments do not match `layout`.
void require_arguments(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                       const AttentionArguments& arguments, const SequenceLayout& layout, int rank) {
  require_parts(queries, keys, values, layout.size(rank));
  if (!arguments.mask) return;
  if (arguments.is_causal) {
    throw UsageError({.what = "Attention got a mask together with is_causal",
                      .why = "scaled_dot_product_attention takes one of them",
                      .hint = "make the mask causal, and leave is_causal out"});
  }
  require_mask(*arguments.mask, layout.size(rank), layout.length());
}

bool has_heads_for(const at::Tensor& queries, const at::Tensor& keys, bool groups_heads) {
  if (queries.dim() < 3) return true;
  const auto of_keys = keys.size(-3), of_queries = queries.size(-3);
  return of_keys == of_queries || (groups_heads && of_keys > 0 && of_queries % of_keys == 0);
}

// Of the batch, which is not repeated.
bool has_equal_batches(const at::Tensor& one, const at::Tensor& other) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(one.dim() - 3, 0));
  return one.dim() == other.dim() && one.sizes().slice(0, count) == other.sizes().slice(0, count);
}

// Throws where a ring cannot compute what was asked for.
void require_ring(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                  const AttentionArguments& arguments) {
  if (arguments.dropout > 0) {
    throw UsageError({.what = text::concat("Attention in a ring got a dropout of ", arguments.dropout),
                      .why = "backward computes the weights again, and would drop others",
                      .hint = "train without dropout in attention, or set parallel.context_attention to gather"});
  }
  const bool fits = has_equal_batches(queries, keys) && has_equal_batches(queries, values) &&
                    has_heads_for(queries, keys, arguments.groups_heads) &&
                    (keys.dim() < 3 || keys.size(-3) == values.size(-3)) && queries.size(-1) == keys.size(-1) &&
                    queries.scalar_type() == keys.scalar_type() && keys.scalar_type() == values.scalar_type();
  if (fits) return;
  throw UsageError(
      {.what = text::concat("Attention in a ring got queries of sizes [", text::join(queries.sizes()), "], keys of [",
                            text::join(keys.sizes()), "] and values of [", text::join(values.sizes()), "]"),
       .why = "they must have one type, equal batches, and heads that fit",
       .hint = "expand them first, or set parallel.context_attention to gather"});
}

/// Sizes that all ranks have: without those along `dim`, which differ.
std::string sizes_beside(const at::Tensor& tensor, std::int64_t dim) {
  auto sizes = tensor.sizes().vec();
  sizes.erase(sizes.end() + dim);
  return text::concat("[", text::join(sizes), "]");
}

std::string mask_text(const std::optional<at::Tensor>& mask, std::int64_t own, std::int64_t all) {
  if (!mask) return "no mask";
  const auto type = at::isFloatingType(mask->scalar_type()) ? "a mask that is added" : "a boolean mask";
  return is_of_own_keys(*mask, own, all) ? text::concat(type, " of own keys ", sizes_beside(*mask, -1)) : type;
}

/// What must be the same on all ranks, since they pass on keys and values, and in backward their gradients.
std::string description_of(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                           const AttentionArguments& arguments, std::int64_t own, std::int64_t all) {
  const bool learns =
      at::GradMode::is_enabled() && (queries.requires_grad() || keys.requires_grad() || values.requires_grad());
  return text::concat(mask_text(arguments.mask, own, all), arguments.is_causal ? ", causal" : "",
                      learns ? ", with gradients" : ", without gradients", ", ", queries.scalar_type(), " queries ",
                      sizes_beside(queries, -2), ", keys ", sizes_beside(keys, -2), ", values ",
                      sizes_beside(values, -2));
}

// @collective
at::Tensor attention_in_ring(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                             const AttentionArguments& arguments, const SequenceLayout& layout,
                             const RankGroup& group) {
  mpi::all_or_none_alike(group.host, "the attention over a divided sequence", [&] {
    require_arguments(queries, keys, values, arguments, layout, group.index());
    require_ring(queries, keys, values, arguments);
    return description_of(queries, keys, values, arguments, layout.size(group.index()), layout.length());
  });
  RingOperands mine{.queries = queries, .keys = keys, .values = values};
  if (arguments.mask) mine.mask = own_mask(*arguments.mask, layout, group.communicator_of(*arguments.mask));
  const auto scale = arguments.scale.value_or(1 / std::sqrt(static_cast<double>(queries.size(-1))));
  return ring_attention(
      mine, {.scores = {.is_causal = arguments.is_causal, .scale = scale}, .layout = layout, .group = group});
}

}  // namespace

at::Tensor context_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                             const AttentionArguments& arguments, const SequenceLayout& layout,
                             const RankGroup& group) {
  if (arguments.form == ContextAttention::ring)
    return attention_in_ring(queries, keys, values, arguments, layout, group);
  require_arguments(queries, keys, values, arguments, layout, group.index());
  auto& over = group.communicator_of(queries);
  const auto mask = arguments.mask ? std::optional(own_mask(*arguments.mask, layout, over)) : std::nullopt;
  const auto all_keys = gather_sequence(keys, -2, layout, over);
  const auto all_values = gather_sequence(values, -2, layout, over);
  if (arguments.is_causal)
    return causal_attention(queries, all_keys, all_values, arguments, layout.ranges(over.rank()));
  return at::scaled_dot_product_attention(queries, all_keys, all_values, mask, arguments.dropout, /*is_causal=*/false,
                                          arguments.scale, arguments.groups_heads);
}

}  // namespace hortator::parallel
