#pragma once

#include <cstdint>
#include <optional>

namespace hortator::exported {

/// A result of Python's arithmetic on whole numbers; nothing if it needs more than 64 bits or does not exist, as after
/// a division by 0.
using WholeNumber = std::optional<std::int64_t>;

WholeNumber add(std::int64_t a, std::int64_t b);
WholeNumber subtract(std::int64_t a, std::int64_t b);
WholeNumber multiply(std::int64_t a, std::int64_t b);
/// Rounds towards minus infinity.
WholeNumber floor_divide(std::int64_t a, std::int64_t b);
/// Has the sign of `b`.
WholeNumber modulo(std::int64_t a, std::int64_t b);
/// Empty for a negative exponent, where the power is a fraction.
WholeNumber power(std::int64_t base, std::int64_t exponent);

}  // namespace hortator::exported
