#include "parallel/zero/travel_buffers.hpp"

#include <algorithm>

namespace hortator::parallel {
namespace {

constexpr int buffers_a_type = 2;  // one is filled while the other travels

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
    for (int i = 0; i < buffers_a_type; ++i) {
      buffers_.push_back(
          {.memory = array->group().allocate(array->elements(), array->travel_type()), .group = &array->group()});
    }
  }
}

std::size_t TravelBuffers::next_turn(const GradientArray& array) const {
  for (auto turn = turn_;; ++turn) {
    const auto& buffer = buffers_[turn % buffers_.size()];
    if (buffer.group == &array.group() && buffer.memory.scalar_type() == array.travel_type()) return turn;
  }
}

bool TravelBuffers::is_next_free(const GradientArray& array) const {
  return buffers_[next_turn(array) % buffers_.size()].taken_by == nullptr;
}

TravelBuffers::Buffer& TravelBuffers::next(const GradientArray& array) {
  turn_ = next_turn(array) + 1;
  return buffers_[(turn_ - 1) % buffers_.size()];
}

void TravelBuffers::free(const GradientArray& array) {
  for (auto& buffer : buffers_) {
    if (buffer.taken_by == &array) buffer.taken_by = nullptr;
  }
}

}  // namespace hortator::parallel
