#include <hortator/datasets/shuffle_buffer.hpp>
#include <hortator/error.hpp>

#include "core/hash.hpp"
#include "core/text/text.hpp"

namespace hortator::detail {

void check_shuffle_buffer(std::int64_t size) {
  if (size >= 1) return;
  throw UsageError({.what = text::concat("ShuffleBufferOptions::size: expected a number from 1, got '", size, "'"),
                    .why = "samples are drawn from the buffer",
                    .hint = "the default is 1000"});
}

std::uint64_t shuffle_seed(std::uint64_t seed, std::int64_t epoch) {
  return core::mix(seed, static_cast<std::uint64_t>(epoch));
}

}  // namespace hortator::detail
