#include "parallel/zero/travel_buffers.hpp"

#include <algorithm>
#include <map>

namespace hortator::parallel {
namespace {

constexpr int buffers_a_type = 2;  // one is filled while the other travels

}  // namespace

TravelBuffers::TravelBuffers(comm::Communicator& communicator, const std::vector<GradientArray>& arrays) {
  std::map<at::ScalarType, std::int64_t> longest;
  for (const auto& array : arrays) {
    auto& elements = longest[array.travel_type()];
    elements = std::max(elements, array.elements());
  }
  for (const auto& [type, elements] : longest) {
    for (int i = 0; i < buffers_a_type; ++i) buffers_.push_back({.memory = communicator.allocate(elements, type)});
  }
}

TravelBuffers::Buffer& TravelBuffers::next(at::ScalarType type) {
  while (true) {
    auto& buffer = buffers_[turn_++ % buffers_.size()];
    if (buffer.memory.scalar_type() == type) return buffer;
  }
}

void TravelBuffers::free(const GradientArray& array) {
  for (auto& buffer : buffers_) {
    if (buffer.taken_by == &array) buffer.taken_by = nullptr;
  }
}

}  // namespace hortator::parallel
