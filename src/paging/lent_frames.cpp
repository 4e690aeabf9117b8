#include "paging/lent_frames.hpp"

#include <algorithm>
#include <limits>

namespace hortator::paging {

void LentFrames::add(const std::vector<std::span<std::byte>>& frames) {
  for (const auto& memory : frames) frames_.push_back({.memory = memory});
}

LentFrames::Gap LentFrames::smallest_gap(std::size_t bytes) const {
  Gap found{.frame = frames_.size()};
  auto smallest = std::numeric_limits<std::size_t>::max();
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    const auto& [memory, used] = frames_[i];
    for (std::size_t before = 0; before <= used.size(); ++before) {
      const auto begin = before == 0 ? 0 : used[before - 1].end;
      const auto size = (before == used.size() ? memory.size() : used[before].begin) - begin;
      if (size < bytes || size >= smallest) continue;
      smallest = size;
      found = {.frame = i, .before = before, .begin = begin};
    }
  }
  return found;
}

std::byte* LentFrames::take(std::size_t bytes) {
  const auto gap = smallest_gap(bytes);
  if (gap.frame == frames_.size()) return nullptr;
  auto& frame = frames_[gap.frame];
  frame.used.insert(frame.used.begin() + static_cast<std::ptrdiff_t>(gap.before), {gap.begin, gap.begin + bytes});
  return frame.memory.data() + gap.begin;
}

bool LentFrames::put_back(const std::byte* data) noexcept {
  for (auto& [memory, used] : frames_) {
    const auto of_page = [&](const UsedBytes& one) { return memory.data() + one.begin == data; };
    if (std::erase_if(used, of_page) > 0) return true;
  }
  return false;
}

std::size_t LentFrames::bytes() const {
  std::size_t sum = 0;
  for (const auto& frame : frames_) sum += frame.memory.size();
  return sum;
}

}  // namespace hortator::paging
