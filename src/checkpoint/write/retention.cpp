#include "checkpoint/write/retention.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::checkpoint {
namespace {

void require_positive(const std::optional<std::int64_t>& value, std::string_view name) {
  if (value.value_or(1) > 0) return;
  throw UsageError({.what = text::concat("project.", name, " is ", *value),
                    .why = "the newest checkpoint is always kept",
                    .hint = "use 1 or more, or leave it unset"});
}

}  // namespace

void check(const Retention& retention) {
  require_positive(retention.total_limit, "total_limit");
  require_positive(retention.keep_every, "keep_every");
}

std::vector<std::int64_t> surplus(std::vector<std::int64_t> numbers, const Retention& retention) {
  if (!retention.total_limit) return {};
  std::ranges::sort(numbers);
  if (retention.keep_every)
    std::erase_if(numbers, [every = *retention.keep_every](std::int64_t n) { return n % every == 0; });
  const auto count = static_cast<std::int64_t>(numbers.size());
  numbers.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, count - *retention.total_limit)));
  return numbers;
}

}  // namespace hortator::checkpoint
