#include "paging/access_order.hpp"

#include <algorithm>
#include <iterator>

namespace hortator::paging {
namespace {

constexpr std::size_t max_kept = std::size_t{1} << 16;
constexpr std::size_t max_compared = 64;
constexpr std::size_t max_candidates = 256;

}  // namespace

AccessOrder::AccessOrder(int pages) : places_(static_cast<std::size_t>(pages)), is_lost_(pages == 0) {
  for (int page = 0; page < pages; ++page) append(page);
}

bool AccessOrder::note(int page) {
  if (page == last_) return false;
  last_ = page;
  const bool was_expected = known_ahead() > 0 && expected(1) == page;
  append(page);
  if (!was_expected) {
    ++surprises_;
    find_place();
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
  places_[static_cast<std::size_t>(page)].push_back(course_.size());
  course_.push_back(page);
}

void AccessOrder::forget_old() {
  const auto dropped = course_.size() / 2;
  course_.erase(course_.begin(), course_.begin() + static_cast<std::ptrdiff_t>(dropped));
  for (auto& places : places_) places.clear();
  for (std::size_t i = 0; i < course_.size(); ++i) places_[static_cast<std::size_t>(course_[i])].push_back(i);
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
  const auto& places = places_[static_cast<std::size_t>(page)];
  if (direction_ == Direction::forward) {
    const auto found = std::lower_bound(places.begin(), places.end(), next_);
    return found != places.end() ? *found - next_ + 1 : never;
  }
  const auto after = std::upper_bound(places.begin(), places.end(), next_);
  return after != places.begin() ? next_ - *std::prev(after) + 1 : never;
}

std::size_t AccessOrder::agreement(std::size_t place, Direction direction) const {
  const auto now = course_.size() - 1;
  std::size_t length = 1;
  while (length < max_compared && length <= now) {
    const bool is_inside = direction == Direction::forward ? place >= length : place + length <= now - length;
    if (!is_inside) break;
    const auto then = direction == Direction::forward ? place - length : place + length;
    if (course_[then] != course_[now - length]) break;
    ++length;
  }
  return length;
}

// The page alone says little: the one before must agree as well.
void AccessOrder::find_place() {
  const auto& places = places_[static_cast<std::size_t>(last_)];
  Likeness best{.length = 1};
  const auto candidates = std::min(places.size() - 1, max_candidates);
  for (std::size_t i = 0; i < candidates; ++i) {
    const auto place = places[places.size() - 2 - i];  // the newest first: it wins among equals
    for (const auto direction : {Direction::forward, Direction::backward}) {
      const auto length = agreement(place, direction);
      if (length > best.length) best = {.length = length, .place = place, .direction = direction};
    }
  }
  is_lost_ = best.length == 1 || (best.direction == Direction::backward && best.place == 0);
  direction_ = best.direction;
  next_ = direction_ == Direction::forward ? best.place + 1 : best.place - std::min<std::size_t>(best.place, 1);
}

}  // namespace hortator::paging
