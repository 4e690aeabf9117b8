// How PageTraffic makes room: which pages leave the frames, and how changed ones go to the store.
#include <algorithm>
#include <utility>

#include "paging/page_traffic.hpp"

namespace hortator::paging {

void PageTraffic::make_room(std::size_t bytes, const AccessOrder& order) {
  while (bytes > 0 && !fits(bytes)) {
    const int victim = farthest(order, 0);
    if (victim >= 0 && !fits_once_published(bytes)) {
      evict_page(victim);
    } else if (!publishing_.empty()) {
      await_publication(publishing_.front(), PageState::absent);
    } else if (!fetching_.empty()) {
      finish_first_fetch();  // was read ahead for nothing
    } else {
      return;  // one operator needs more than the budget
    }
  }
}

bool PageTraffic::make_room_ahead(std::size_t bytes, std::size_t distance, const AccessOrder& order) {
  while (bytes > 0 && !fits(bytes)) {
    if (fits_once_published(bytes)) {
      await_publication(publishing_.front(), PageState::absent);
      continue;
    }
    const int victim = farthest(order, distance);
    if (victim < 0) return false;
    evict_page(victim);
  }
  return true;
}

// Whether it may fit when the pages that are being published are gone.
bool PageTraffic::fits_once_published(std::size_t bytes) const {
  return !publishing_.empty() && counters_.frame_bytes - publishing_bytes_ + bytes <= options_.budget_bytes;
}

int PageTraffic::farthest(const AccessOrder& order, std::size_t beyond) const {
  int found = -1;
  std::size_t found_distance = 0;
  for (const auto& page : pages_) {
    const auto& candidate = slot(page.number);
    if (candidate.state != PageState::present || candidate.pins > 0 || !candidate.frame) continue;
    const auto distance = order.distance_to(page.number);
    if (distance <= beyond) continue;
    const bool is_farther = found < 0 || distance > found_distance ||
                            (distance == found_distance && candidate.last_use < slot(found).last_use);
    if (!is_farther) continue;
    found = page.number;
    found_distance = distance;
  }
  return found;
}

void PageTraffic::evict_page(int page) {
  if (slot(page).is_changed) return start_publishing(page);
  slot(page).state = PageState::absent;
  detach(page);
  drop_frame(page);
}

void PageTraffic::start_publishing(int page) {
  auto& published = slot(page);
  published.work = store_.publish(page_at(page), {memory(page), page_at(page).bytes});
  published.is_changed = false;
  published.state = PageState::publishing;
  detach(page);
  publishing_.push_back(page);
  publishing_bytes_ += published.frame.bytes();
}

void PageTraffic::await_publication(int page, PageState then) {
  while (slot(page).state == PageState::publishing) {
    const int first = publishing_.front();
    publishing_.pop_front();
    auto& published = slot(first);
    publishing_bytes_ -= published.frame.bytes();
    published.state = PageState::present;
    try {
      std::exchange(published.work, {}).wait();
      ++counters_.published;
    } catch (...) {
      attach(first);  // the frame is the only copy
      published.is_changed = true;
      throw;
    }
    if (first == page && then == PageState::present) return attach(first);
    published.state = PageState::absent;
    drop_frame(first);
  }
}

void PageTraffic::publish_changed() {
  for (const auto& page : pages_) {
    auto& changed = slot(page.number);
    if (!changed.is_changed) continue;
    store_.publish(page, {memory(page.number), page.bytes}).wait();
    changed.is_changed = false;
    ++counters_.published;
  }
  while (!publishing_.empty()) await_publication(publishing_.front(), PageState::absent);
}

void PageTraffic::evict() {
  while (!fetching_.empty()) finish_first_fetch();
  while (!publishing_.empty()) await_publication(publishing_.front(), PageState::absent);
  for (const auto& page : pages_) {
    auto& present = slot(page.number);
    if (present.state != PageState::present || present.pins > 0) continue;
    present.is_changed = false;
    evict_page(page.number);
  }
}

void PageTraffic::forget() {
  evict();
  for (auto& present : slots_) present.is_outdated = present.pins > 0;
}

}  // namespace hortator::paging
