#include "parallel/context/attention_arguments.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <string>

#include "core/text/text.hpp"
#include "mpi/agree.hpp"

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

void require_mask(const at::Tensor& mask, std::int64_t own, std::int64_t all) {
  if (mask.dim() < 2) refuse_mask(mask, own, all);
  const auto rows = mask.size(-2);
  const auto columns = mask.size(-1);
  if (columns != all && columns != 1 && !is_of_own_keys(mask, own, all)) refuse_mask(mask, own, all);
  if (rows != own && rows != all && rows != 1) refuse_mask(mask, own, all);
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

// Whether both have the same sizes of the batch, whose dimensions are not repeated.
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

}  // namespace

bool is_of_own_keys(const at::Tensor& mask, std::int64_t own, std::int64_t all) {
  return mask.size(-2) == 1 && mask.size(-1) == own && own != all;
}

void agree_on_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                        const AttentionArguments& arguments, const SequenceLayout& layout, const RankGroup& group) {
  mpi::all_or_none_alike(group.host, "the attention over a divided sequence", [&] {
    require_arguments(queries, keys, values, arguments, layout, group.index());
    if (arguments.form == ContextAttention::ring) require_ring(queries, keys, values, arguments);
    return description_of(queries, keys, values, arguments, layout.size(group.index()), layout.length());
  });
}

}  // namespace hortator::parallel
