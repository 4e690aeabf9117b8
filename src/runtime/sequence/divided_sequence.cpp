#include "runtime/sequence/divided_sequence.hpp"

#include <ATen/TensorIndexing.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <hortator/error.hpp>
#include <mutex>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::runtime {
namespace {

std::mutex divided_mutex;
std::optional<DividedSequence> divided;

}  // namespace

std::optional<DividedSequence> divided_sequence() {
  const std::scoped_lock lock(divided_mutex);
  return divided;
}

void set_divided_sequence(std::optional<DividedSequence> sequence) {
  const std::scoped_lock lock(divided_mutex);
  divided = std::move(sequence);
}

at::Tensor default_positions(std::int64_t past, std::int64_t count, c10::Device device) {
  const auto sequence = divided_sequence();
  if (!sequence) return at::arange(past, past + count, at::TensorOptions().device(device).dtype(at::kLong));
  if (past == 0 && count == sequence->own()) return sequence->positions.to(device);
  throw UsageError({.what = text::concat("A model got ", text::count(count, "token"), " after ", past,
                                         ", but this rank has ", sequence->own(), " of a divided sequence"),
                    .why = "it computes the positions of its tokens",
                    .hint = "list input_ids among the buffers of maybe_context_parallel, and use no cache within it"});
}

at::Tensor first_token(const at::Tensor& states) {
  const auto sequence = divided_sequence();
  if (!sequence) return states.select(1, 0);
  return sequence->tokens_at(states, at::zeros({states.size(0)}, states.options().dtype(at::kLong)));
}

at::Tensor last_token(const at::Tensor& states, const at::Tensor& is_token) {
  const auto positions = default_positions(0, is_token.size(1), is_token.device());
  const auto last = (positions * is_token).amax(-1);
  if (const auto sequence = divided_sequence()) return sequence->tokens_at(states, sequence->max(last));
  return states.index({at::arange(states.size(0), last.options()), last});
}

}  // namespace hortator::runtime
