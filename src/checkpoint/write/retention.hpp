#pragma once

#include <cstdint>
#include <optional>
#include <vector>

/// Which checkpoints stay, and how often to make one.
namespace hortator::checkpoint {

struct Retention {
  std::optional<std::int64_t> total_limit = {};  ///< as many of the newest stay; none: all
  std::optional<std::int64_t> keep_every = {};   ///< numbers that it divides stay for ever, and are not counted
};

/// Throws unless the numbers have a meaning.
void check(const Retention& retention);

/// Of the checkpoints that have these numbers, those that are too many, from the oldest on.
std::vector<std::int64_t> surplus(std::vector<std::int64_t> numbers, const Retention& retention);

}  // namespace hortator::checkpoint
