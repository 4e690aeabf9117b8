#include "parallel/pipeline/plain/route.hpp"

#include <algorithm>
#include <utility>

namespace hortator::parallel {

int Route::stage_of(std::int64_t op) const {
  return static_cast<int>(std::ranges::upper_bound(begins, op) - begins.begin()) - 1;
}

bool Route::carries(const ValueId& value) const {
  return std::ranges::any_of(messages, [&](const auto& message) { return std::ranges::binary_search(message, value); });
}

void RouteBuilder::add(const Route::Step& step, int stage, std::span<const ValueId> uses) {
  while (this->stage() < stage) {
    route_.begins.push_back(next_op());
    sent_.emplace_back();
  }
  for (const auto& value : uses) {
    for (int to = route_.stage_of(value.op) + 1; to <= stage; ++to) sent_[static_cast<std::size_t>(to)].insert(value);
  }
  route_.steps.push_back(step);
}

void RouteBuilder::note_alias(const ValueId& view, const ValueId& of) { memory_.emplace(view, memory_of(of)); }

ValueId RouteBuilder::memory_of(const ValueId& value) const {
  const auto found = memory_.find(value);
  return found == memory_.end() ? value : found->second;
}

bool RouteBuilder::is_split(const ValueId& value) const {
  const auto memory = memory_of(value);
  const auto shares = [&](const ValueId& other) { return memory_of(other) == memory; };
  return std::ranges::any_of(sent_, [&](const auto& sent) { return std::ranges::count_if(sent, shares) > 1; });
}

Route RouteBuilder::finish() && {
  route_.messages.clear();
  for (const auto& sent : sent_) route_.messages.emplace_back(sent.begin(), sent.end());
  return std::move(route_);
}

}  // namespace hortator::parallel
