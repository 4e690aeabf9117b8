#pragma once

#include <ATen/core/Tensor.h>

#include "parallel/tensor/divided_tensor.hpp"

/// Whole numbers that choose an element of a divided dimension: ids of tokens, targets of a loss.
namespace hortator::parallel::rules {

/// Whole numbers as positions in this rank's part.
struct OwnPositions {
  at::Tensor index;     ///< 0 where another rank has it
  at::Tensor is_other;  ///< where another rank has it
};

/// The positions of `numbers` in a part of `part` elements.
OwnPositions own_positions(const at::Tensor& numbers, std::int64_t part, const TensorRanks& ranks);

/// Throws UsageError unless all numbers, which all ranks have alike, are from 0 to `count` - 1; on a device it fails
/// when the device gets there. `what` has them: "an embedding".
void require_below(const at::Tensor& numbers, std::int64_t count, const char* what);

}  // namespace hortator::parallel::rules
