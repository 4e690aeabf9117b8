#include "parallel/tensor/rules/class_numbers.hpp"

#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::parallel::rules {

OwnPositions own_positions(const at::Tensor& numbers, std::int64_t part, const TensorRanks& ranks) {
  const auto own = numbers - part * ranks.index();
  auto is_other = own.lt(0).logical_or(own.ge(part));
  return {.index = own.masked_fill(is_other, 0), .is_other = std::move(is_other)};
}

void require_below(const at::Tensor& numbers, std::int64_t count, const char* what) {
  if (numbers.numel() == 0) return;
  if (!numbers.is_cpu()) {
    at::_assert_async(numbers.ge(0).logical_and(numbers.lt(count)).all());
    return;
  }
  const auto [lowest, highest] = at::aminmax(numbers);
  const auto low = lowest.item<std::int64_t>(), high = highest.item<std::int64_t>();
  if (low >= 0 && high < count) return;
  throw UsageError({.what = text::concat("The number ", low < 0 ? low : high, " came to ", what, " of ", count),
                    .why = text::concat("numbers from 0 to ", count - 1, " are expected"),
                    .hint = "check that the tokenizer and the labels are those of the model"});
}

}  // namespace hortator::parallel::rules
