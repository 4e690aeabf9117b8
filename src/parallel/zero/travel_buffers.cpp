#include "parallel/zero/travel_buffers.hpp"

#include <algorithm>

namespace hortator::parallel {
namespace {

bool travel_alike(const GradientArray& a, const GradientArray& b) {
  return &a.group() == &b.group() && a.travel_type() == b.travel_type();
}

}  // namespace

TravelBuffers::TravelBuffers(const std::vector<GradientArray>& arrays) {
  std::vector<const GradientArray*> longest;  // of each type and group, in the order of the arrays
  for (const auto& array : arrays) {
    const auto found = std::ranges::find_if(longest, [&](const auto* one) { return travel_alike(*one, array); });
    if (found == longest.end()) {
      longest.push_back(&array);
    } else if (array.elements() > (*found)->elements()) {
      *found = &array;
    }
  }
  for (const auto* array : longest) {
    auto& pair = pairs_.emplace_back(Pair{.group = &array->group(), .type = array->travel_type()});
    for (auto& buffer : pair.buffers) buffer.memory = array->group().allocate(array->elements(), pair.type);
  }
}

std::size_t TravelBuffers::pair_of(const GradientArray& array) const {
  const auto found = std::ranges::find_if(
      pairs_, [&](const Pair& one) { return one.group == &array.group() && one.type == array.travel_type(); });
  return static_cast<std::size_t>(found - pairs_.begin());
}

bool TravelBuffers::is_next_free(const GradientArray& array) const {
  const auto& pair = pairs_.at(pair_of(array));
  return pair.buffers.at(pair.next()).taken_by == nullptr;
}

TravelBuffers::Buffer& TravelBuffers::next(const GradientArray& array) {
  auto& pair = pairs_.at(pair_of(array));
  auto& buffer = pair.buffers.at(pair.next());
  ++pair.turn;
  return buffer;
}

void TravelBuffers::free(const GradientArray& array) {
  for (auto& pair : pairs_) {
    for (auto& buffer : pair.buffers)
      if (buffer.taken_by == &array) buffer.taken_by = nullptr;
  }
}

}  // namespace hortator::parallel
