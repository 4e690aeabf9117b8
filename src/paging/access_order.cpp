#include "paging/access_order.hpp"

#include <algorithm>
#include <iterator>

namespace hortator::paging {
namespace {

constexpr std::size_t max_kept = std::size_t{1} << 16;
constexpr std::size_t max_compared = 64;
constexpr std::size_t max_candidates = 256;

}  // namespace

AccessOrder::AccessOrder(int pages) : positions_(static_cast<std::size_t>(pages) + 1), is_lost_(pages == 0) {
  for (int page = 0; page < pages; ++page) append(page);
}

bool AccessOrder::note(int page) {
  if (page == last_) return false;
  last_ = page;
  const bool was_expected = known_ahead() > 0 && expected(1) == page;
  append(page);
  if (!was_expected) {
    ++surprises_;
    find_position();
  } else if (direction_ == Direction::forward) {
    ++next_;
  } else if (next_ > 0) {
    --next_;
  } else {
    is_lost_ = true;
  }
  if (course_.size() > max_kept) forget_old();
  return true;
}

void AccessOrder::append(int page) {
  positions_[static_cast<std::size_t>(page)].push_back(course_.size());
  course_.push_back(page);
}

void AccessOrder::forget_old() {
  const auto dropped = course_.size() / 2;
  course_.erase(course_.begin(), course_.begin() + static_cast<std::ptrdiff_t>(dropped));
  for (auto& positions : positions_) positions.clear();
  for (std::size_t i = 0; i < course_.size(); ++i) positions_[static_cast<std::size_t>(course_[i])].push_back(i);
  is_lost_ = is_lost_ || next_ < dropped;
  next_ -= std::min(next_, dropped);
}

std::size_t AccessOrder::known_ahead() const {
  if (is_lost_) return 0;
  return direction_ == Direction::forward ? course_.size() - next_ : next_ + 1;
}

int AccessOrder::expected(std::size_t ahead) const {
  return course_[direction_ == Direction::forward ? next_ + ahead - 1 : next_ + 1 - ahead];
}

std::size_t AccessOrder::distance_to(int page) const {
  if (is_lost_) return never;
  const auto& positions = positions_[static_cast<std::size_t>(page)];
  if (direction_ == Direction::forward) {
    const auto found = std::ranges::lower_bound(positions, next_);
    return found != positions.end() ? *found - next_ + 1 : never;
  }
  const auto after = std::ranges::upper_bound(positions, next_);
  return after != positions.begin() ? next_ - *std::prev(after) + 1 : never;
}

std::size_t AccessOrder::agreement(std::size_t position, Direction direction) const {
  const auto now = course_.size() - 1;
  std::size_t length = 1;
  while (length < max_compared && length <= now) {
    const bool is_inside = direction == Direction::forward ? position >= length : position + length <= now - length;
    if (!is_inside) break;
    const auto then = direction == Direction::forward ? position - length : position + length;
    if (course_[then] != course_[now - length]) break;
    ++length;
  }
  return length;
}

// Equal pages are not enough for a match: the page before must agree as well.
void AccessOrder::find_position() {
  const auto& positions = positions_[static_cast<std::size_t>(last_)];
  Match best{.length = 1};
  const auto candidates = std::min(positions.size() - 1, max_candidates);
  for (std::size_t i = 0; i < candidates; ++i) {
    const auto position = positions[positions.size() - 2 - i];  // newest first: it wins among equals
    for (const auto direction : {Direction::forward, Direction::backward}) {
      const auto length = agreement(position, direction);
      if (length > best.length) best = {.length = length, .position = position, .direction = direction};
    }
  }
  is_lost_ = best.length == 1 || (best.direction == Direction::backward && best.position == 0);
  direction_ = best.direction;
  next_ =
      direction_ == Direction::forward ? best.position + 1 : best.position - std::min<std::size_t>(best.position, 1);
}

}  // namespace hortator::paging
