#include "paging/page_traffic.hpp"

#include <algorithm>
#include <utility>

#include "machine/memory/system_memory.hpp"
#include "paging/interception/absence.hpp"
#include "paging/interception/storage_state.hpp"

namespace hortator::paging {

PageTraffic::PageTraffic(const PagedStorages& storages, const std::vector<Page>& pages, Store& store,
                         const Options& options)
    : storages_(storages), pages_(pages), store_(store), options_(options), frames_(storages.device()) {
  start_over();
}

void PageTraffic::start_over() {
  slots_ = std::vector<Slot>(pages_.size());
  for (const auto& page : pages_) slot(page.number).home = store_.home(page);
}

PageTraffic::~PageTraffic() {
  // The store works with our frames until then. What goes wrong now concerns nobody any more.
  const auto wait = [](comm::Work& work) {
    try {
      work.wait();
    } catch (...) {
    }
  };
  for (const int page : coming_) wait(slot(page).work);
  for (const int page : leaving_) wait(slot(page).work);
}

std::byte* PageTraffic::memory(int page) const {
  return slot(page).home != nullptr ? slot(page).home : slot(page).frame.data();
}

bool PageTraffic::is_any_pinned() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.pins > 0; });
}

void PageTraffic::pin(int page, const AccessOrder& order) {
  auto& pinned = slot(page);
  ++pinned.pins;  // first of all, so that it does not make way for itself
  pinned.last_use = ++uses_;
  try {
    bring(page, order);
  } catch (...) {
    --pinned.pins;
    throw;
  }
}

void PageTraffic::bring(int page, const AccessOrder& order) {
  if (slot(page).state == State::leaving) await_leaving(page, State::present);
  if (slot(page).state == State::absent) {
    make_room(frame_bytes(page), order);
    ask_for(page);
  }
  const bool is_coming = slot(page).state == State::coming;
  read_ahead(order, static_cast<std::size_t>(options_.fetch_ahead) + (is_coming ? 1 : 0));
  if (!is_coming) return;
  announce(order);
  await_coming(page);
}

void PageTraffic::expect(const AccessOrder& order) {
  read_ahead(order, static_cast<std::size_t>(options_.fetch_ahead));
  announce(order);
}

void PageTraffic::unpin(int page, const AccessOrder& order) noexcept {
  if (--slot(page).pins > 0) return;
  // Without a budget for it, it leaves at once. A store that cannot keep it says so to whoever needs the room.
  try {
    if (std::exchange(slot(page).is_outdated, false)) {
      slot(page).is_changed = false;
      send_off(page);
    }
    while (counters_.frame_bytes - leaving_bytes_ > options_.budget_bytes) {
      const int victim = farthest(order, 0);
      if (victim < 0) return;
      send_off(victim);
    }
  } catch (...) {
  }
}

void PageTraffic::ask_for(int page) {
  take_frame(page);
  auto& asked = slot(page);
  try {
    asked.work = store_.fetch(page_at(page), {memory(page), page_at(page).bytes});
  } catch (...) {
    drop_frame(page);
    throw;
  }
  asked.state = State::coming;
  asked.is_announced = false;
  coming_.push_back(page);
  ++counters_.fetched;
}

std::exception_ptr PageTraffic::receive_first() {
  const int page = coming_.front();
  coming_.pop_front();
  try {
    std::exchange(slot(page).work, {}).wait();
  } catch (...) {
    slot(page).state = State::absent;
    drop_frame(page);
    return std::current_exception();
  }
  slot(page).state = State::present;
  attach(page);
  return {};
}

void PageTraffic::await_coming(int page) {
  while (slot(page).state == State::coming) {
    const int first = coming_.front();
    const auto error = receive_first();
    // Of pages that were read ahead, whoever needs them asks again, and is told.
    if (error && first == page) std::rethrow_exception(error);
  }
}

void PageTraffic::read_ahead(const AccessOrder& order, std::size_t max_coming) {
  const auto known = order.known_ahead();
  for (std::size_t ahead = 1; ahead <= known; ++ahead) {
    if (coming_.size() >= max_coming) return;
    const int page = order.expected(ahead);
    if (slot(page).state != State::absent) continue;
    if (!make_room_ahead(frame_bytes(page), ahead, order)) return;
    ask_for(page);
    ++counters_.fetched_ahead;
  }
}

// Frames are few, and so reading would pause while what is present is used. What comes after the pages under way can be
// on its way into the system's cache meanwhile.
void PageTraffic::announce(const AccessOrder& order) {
  std::size_t bytes = 0;
  const auto known = order.known_ahead();
  for (std::size_t ahead = 1; ahead <= known && bytes < options_.announced_bytes; ++ahead) {
    const int page = order.expected(ahead);
    if (slot(page).state != State::absent) continue;
    bytes += page_at(page).bytes;
    if (!std::exchange(slot(page).is_announced, true)) store_.announce(page_at(page));
  }
}

void PageTraffic::make_room(std::size_t bytes, const AccessOrder& order) {
  while (bytes > 0 && !fits(bytes)) {
    const int victim = farthest(order, 0);
    const bool is_enough_leaving = counters_.frame_bytes - leaving_bytes_ + bytes <= options_.budget_bytes;
    if (victim >= 0 && !is_enough_leaving) {
      send_off(victim);
    } else if (!leaving_.empty()) {
      await_leaving(leaving_.front(), State::absent);
    } else if (!coming_.empty()) {
      receive_first();  // read ahead in vain
    } else {
      return;  // one operator needs more than the budget
    }
  }
}

bool PageTraffic::make_room_ahead(std::size_t bytes, std::size_t distance, const AccessOrder& order) {
  while (bytes > 0 && !fits(bytes)) {
    if (!leaving_.empty() && counters_.frame_bytes - leaving_bytes_ + bytes <= options_.budget_bytes) {
      await_leaving(leaving_.front(), State::absent);
      continue;
    }
    const int victim = farthest(order, distance);
    if (victim < 0) return false;
    send_off(victim);
  }
  return true;
}

int PageTraffic::farthest(const AccessOrder& order, std::size_t beyond) const {
  int found = -1;
  std::size_t found_distance = 0;
  for (const auto& page : pages_) {
    const auto& candidate = slot(page.number);
    if (candidate.state != State::present || candidate.pins > 0 || !candidate.frame) continue;
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

void PageTraffic::send_off(int page) {
  if (slot(page).is_changed) return start_leaving(page);
  slot(page).state = State::absent;
  detach(page);
  drop_frame(page);
}

void PageTraffic::start_leaving(int page) {
  auto& leaver = slot(page);
  leaver.work = store_.publish(page_at(page), {memory(page), page_at(page).bytes});
  leaver.is_changed = false;
  leaver.state = State::leaving;
  detach(page);
  leaving_.push_back(page);
  leaving_bytes_ += leaver.frame.bytes();
}

void PageTraffic::await_leaving(int page, State then) {
  while (slot(page).state == State::leaving) {
    const int first = leaving_.front();
    leaving_.pop_front();
    auto& leaver = slot(first);
    leaving_bytes_ -= leaver.frame.bytes();
    leaver.state = State::present;
    try {
      std::exchange(leaver.work, {}).wait();
      ++counters_.published;
    } catch (...) {
      attach(first);  // this is the only copy
      leaver.is_changed = true;
      throw;
    }
    if (first == page && then == State::present) return attach(first);
    leaver.state = State::absent;
    drop_frame(first);
  }
}

void PageTraffic::fill(const Page& page, const std::function<void(std::byte*)>& fill) {
  take_frame(page.number);
  try {
    fill(memory(page.number));
    store_.publish(page, {memory(page.number), page.bytes}).wait();
  } catch (...) {
    drop_frame(page.number);
    throw;
  }
  drop_frame(page.number);
}

void PageTraffic::let_go(int page) noexcept {
  slot(page).state = State::absent;
  slot(page).pins = 0;
  slot(page).is_changed = false;
  drop_frame(page);
}

void PageTraffic::publish_changed() {
  for (const auto& page : pages_) {
    auto& changed = slot(page.number);
    if (!changed.is_changed) continue;
    store_.publish(page, {memory(page.number), page.bytes}).wait();
    changed.is_changed = false;
    ++counters_.published;
  }
  while (!leaving_.empty()) await_leaving(leaving_.front(), State::absent);
}

void PageTraffic::evict() {
  while (!coming_.empty()) receive_first();
  while (!leaving_.empty()) await_leaving(leaving_.front(), State::absent);
  for (const auto& page : pages_) {
    auto& present = slot(page.number);
    if (present.state != State::present || present.pins > 0) continue;
    present.is_changed = false;
    send_off(page.number);
  }
}

void PageTraffic::forget() {
  evict();
  for (auto& present : slots_) present.is_outdated = present.pins > 0;
}

std::size_t PageTraffic::frame_bytes(int page) const {
  return slot(page).home != nullptr ? 0 : machine::whole_pages(page_at(page).bytes);
}

void PageTraffic::take_frame(int page) {
  auto& taker = slot(page);
  if (taker.home != nullptr) return;
  taker.frame = frames_.take(page_at(page).bytes);
  counters_.frame_bytes += taker.frame.bytes();
  counters_.peak_frame_bytes = std::max(counters_.peak_frame_bytes, counters_.frame_bytes);
}

void PageTraffic::drop_frame(int page) noexcept {
  counters_.frame_bytes -= slot(page).frame.bytes();
  slot(page).frame = Frame();
}

void PageTraffic::attach(int page) {
  for (const auto& place : page_at(page).places)
    lend_memory(storages_.storage(place.storage), memory(page) + place.offset);
}

void PageTraffic::detach(int page) {
  for (const auto& place : page_at(page).places)
    take_memory(storages_.storage(place.storage), absence_of(storages_, place.storage));
}

}  // namespace hortator::paging
