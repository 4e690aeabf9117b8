#include "parallel/zero/shard_plan.hpp"

#include <algorithm>
#include <map>

namespace hortator::parallel {
namespace {

constexpr std::int64_t up_to_grain(std::int64_t value, std::int64_t grain) {
  return (value + grain - 1) / grain * grain;
}

struct OpenArray {
  ShardPlan::Flat flat;
  std::int64_t bytes = 0;
};

}  // namespace

core::Range ShardPlan::owned(std::size_t item, int rank) const {
  const auto& position = positions[item];
  const auto mine = part(position.flat, rank);
  const auto within = [&](std::int64_t element) {
    return std::clamp<std::int64_t>(element - position.offset, 0, position.elements);
  };
  return {within(mine.begin), within(mine.end)};
}

ShardPlan plan_shards(std::span<const ShardItem> items, int ranks, const ShardLimits& limits) {
  ShardPlan plan{.ranks = ranks};
  plan.positions.resize(items.size());
  std::map<ArrayKind, OpenArray> open;  // by kind
  const auto close = [&](OpenArray& one) {
    one.flat.elements = up_to_grain(one.flat.elements, limits.grain * ranks);
    for (const auto item : one.flat.items) plan.positions[item].flat = plan.flats.size();
    plan.flats.push_back(std::move(one.flat));
  };
  for (auto i = items.size(); i-- > 0;) {
    const auto& item = items[i];
    auto& into = open[item.kind];
    into.flat.kind = item.kind;
    plan.positions[i] = {.offset = into.flat.elements, .elements = item.elements};
    into.flat.items.push_back(i);
    into.flat.elements += up_to_grain(item.elements, limits.grain);
    into.bytes += item.elements * item.element_bytes;
    if (into.bytes < (plan.flats.empty() ? limits.first_bytes : limits.bytes)) continue;
    close(into);
    open.erase(item.kind);
  }
  for (auto& [kind, one] : open) close(one);
  return plan;
}

}  // namespace hortator::parallel
