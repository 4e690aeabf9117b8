#include "runtime/sequence/divided_sequence.hpp"

#include <ATen/ops/arange.h>

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

}  // namespace hortator::runtime
