#pragma once

#include <cstdint>
#include <optional>
#include <vector>

/// Which checkpoints are kept.
namespace hortator::checkpoint {

struct Retention {
  std::optional<std::int64_t> total_limit = {};  ///< the number of newest checkpoints to keep; unset: all
  std::optional<std::int64_t> keep_every = {};   ///< multiples of it are kept forever and not counted
};

/// Throws UsageError unless all numbers are at least 1.
void check(const Retention& retention);

/// Returns which of the checkpoints with these numbers to remove, oldest first.
std::vector<std::int64_t> surplus(std::vector<std::int64_t> numbers, const Retention& retention);

}  // namespace hortator::checkpoint
