#pragma once

#include <cstdint>

namespace hortator::packed {

/// Rounds to whole numbers from -127 to 127. The scale is the largest absolute value.
void pack_int8_row(const float* row, std::int64_t inputs, float& scale, std::uint8_t* numbers);

}  // namespace hortator::packed
