#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace hortator::runtime {

/// A sequence that is divided over ranks (parallel/context), as models need to know it.
struct DividedSequence {
  at::Tensor positions = {};  ///< of this rank's tokens, ascending, int64 on the CPU
  std::int64_t length = 0;    ///< of the whole sequence

  std::int64_t own() const { return positions.numel(); }
};

/// The sequence that is divided now; nothing if none is.
std::optional<DividedSequence> divided_sequence();
void set_divided_sequence(std::optional<DividedSequence> sequence);

/// The positions of `count` tokens after `past` earlier ones, int64 on the device: past, past + 1, ..., or those of
/// this rank's tokens in a divided sequence. Throws UsageError if it has other tokens.
at::Tensor default_positions(std::int64_t past, std::int64_t count, c10::Device device);

}  // namespace hortator::runtime
