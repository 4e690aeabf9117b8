#include "exported/graph/whole_number.hpp"

namespace hortator::exported {

WholeNumber add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? WholeNumber() : sum;
}

WholeNumber subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  return __builtin_sub_overflow(a, b, &difference) ? WholeNumber() : difference;
}

WholeNumber multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? WholeNumber() : product;
}

WholeNumber floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return {};
  if (b == -1) return subtract(0, a);
  return a / b - static_cast<std::int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

WholeNumber modulo(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const auto quotient = floor_divide(a, b);
  return quotient ? WholeNumber(a - *quotient * b) : WholeNumber();
}

WholeNumber power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return {};
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  WholeNumber result = 1;  // overflows soon
  for (; result && exponent > 0; --exponent) result = multiply(*result, base);
  return result;
}

}  // namespace hortator::exported
