#include "simulation/state/log_row.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

void require_free(const std::string& name) {
  const bool is_taken = name == "step" || name == "time";
  if (!is_taken && !name.empty()) return;
  throw UsageError({.what = text::concat("hortator_log got the name ", text::quote(name)),
                    .why = is_taken ? "each row has the step and the time under this name" : "a column needs a name",
                    .hint = "choose another name, such as simulated_time"});
}

void require_step(std::optional<std::int64_t> step) {
  if (step.value_or(0) >= 0) return;
  throw UsageError({.what = text::concat("hortator_log_step: expected a step from 0, got ", *step)});
}

}  // namespace

bool LogRow::has(const std::string& name) const {
  return std::ranges::any_of(numbers_, [&](const auto& one) { return one.first == name; });
}

void LogRow::add(std::optional<std::int64_t> step, const std::string& name, double number) {
  require_free(name);
  require_step(step);
  if (step != step_ || has(name)) flush();
  step_ = step;
  numbers_.emplace_back(name, number);
}

void LogRow::flush() {
  if (numbers_.empty()) return;
  const auto row = std::exchange(numbers_, {});
  write_(row, std::exchange(step_, std::nullopt));
}

}  // namespace hortator::simulation
