#include "paging/page_traffic.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "interception/storage_memory.hpp"
#include "machine/memory/system_memory.hpp"

namespace hortator::paging {

PageTraffic::PageTraffic(const PagedStorages& storages, const std::vector<Page>& pages, Store& store, Options options)
    : storages_(storages), pages_(pages), store_(store), options_(std::move(options)), frames_(storages.device()) {
  frames_.lend(options_.frames);
  start_over();
}

void PageTraffic::start_over() {
  slots_ = std::vector<PageSlot>(pages_.size());
  for (const auto& page : pages_) slot(page.number).home = store_.home(page);
}

PageTraffic::~PageTraffic() {
  // The store uses the frames until then. Errors have no receiver any more.
  const auto wait = [](comm::Work& work) {
    try {
      work.wait();
    } catch (...) {
    }
  };
  for (const int page : fetching_) wait(slot(page).work);
  for (const int page : publishing_) wait(slot(page).work);
}

std::byte* PageTraffic::memory(int page) const {
  return slot(page).home != nullptr ? slot(page).home : slot(page).frame.data();
}

bool PageTraffic::is_any_pinned() const {
  return std::ranges::any_of(slots_, [](const PageSlot& slot) { return slot.pins > 0; });
}

void PageTraffic::pin(int page, const AccessOrder& order, const PageUse& use) {
  auto& pinned = slot(page);
  pinned.uses.note_use(use.cast);
  ++pinned.pins;  // first, so that it is not evicted to make room for itself
  pinned.last_use = ++uses_;
  try {
    load(page, order, use);
  } catch (...) {
    --pinned.pins;
    throw;
  }
}

void PageTraffic::load(int page, const AccessOrder& order, const PageUse& use) {
  if (slot(page).state == PageState::publishing) await_publication(page, PageState::present);
  if (!use.is_exact) drop_exact(page);
  if (slot(page).state == PageState::absent) {
    make_room(frame_bytes(page), order);
    start_fetch(page, use);
  }
  const bool is_fetching = slot(page).state == PageState::fetching;
  read_ahead(order, static_cast<std::size_t>(options_.fetch_ahead) + (is_fetching ? 1 : 0));
  if (is_fetching) {
    announce(order);
    await_fetch(page);
  }
  if (!is_enough(slot(page), use)) fetch_whole(page);
}

bool PageTraffic::is_enough(const PageSlot& present, const PageUse& use) const {
  if (present.is_rounded) return !use.is_exact;
  return !present.cast || present.cast == use.cast;
}

// Drops a page with exact values where operators get rounded ones, unless something else keeps it: what operators
// compute must not depend on whether the program has looked at the exact values.
void PageTraffic::drop_exact(int page) {
  const auto& present = slot(page);
  if (present.state != PageState::present || present.pins > 1 || present.is_rounded) return;
  if (!store_.can_round(page_at(page))) return;
  evict_page(page);
  await_publication(page, PageState::absent);
}

// In the memory that it has. Operators that use values rounded to autocast's type meanwhile get the same from the whole
// ones.
void PageTraffic::fetch_whole(int page) {
  while (!fetching_.empty()) finish_first_fetch();  // Works are waited for in the order of their calls
  store_.fetch(page_at(page), {memory(page), page_at(page).bytes}).wait();
  slot(page).cast.reset();
  slot(page).is_rounded = false;
  ++counters_.fetched;
  ++counters_.fetched_again;
}

void PageTraffic::expect(const AccessOrder& order) {
  read_ahead(order, static_cast<std::size_t>(options_.fetch_ahead));
  announce(order);
}

void PageTraffic::advance() {
  if (!fetching_.empty()) store_.advance();
}

void PageTraffic::unpin(int page, const AccessOrder& order) noexcept {
  if (--slot(page).pins > 0) return;
  // Beyond the budget it is evicted at once. If the store fails, the error is thrown when its memory is needed.
  try {
    if (std::exchange(slot(page).is_outdated, false)) {
      slot(page).is_changed = false;
      evict_page(page);
    }
    while (counters_.frame_bytes - publishing_bytes_ > options_.budget_bytes) {
      const int victim = farthest(order, 0);
      if (victim < 0) return;
      evict_page(victim);
    }
  } catch (...) {
  }
}

void PageTraffic::start_fetch(int page, const PageUse& use) {
  take_frame(page);
  auto& asked = slot(page);
  asked.uses.note_fetch();
  asked.is_rounded = !use.is_exact && store_.can_round(page_at(page));
  asked.cast = asked.is_rounded ? std::nullopt : asked.uses.expected();
  if (asked.cast && !store_.can_cast(page_at(page), *asked.cast)) asked.cast.reset();
  try {
    asked.work = fetch_as_chosen(page);
  } catch (...) {
    drop_frame(page);
    throw;
  }
  asked.state = PageState::fetching;
  asked.is_announced = false;
  fetching_.push_back(page);
  ++counters_.fetched;
  if (asked.cast) ++counters_.fetched_cast;
  if (asked.is_rounded) ++counters_.fetched_rounded;
}

comm::Work PageTraffic::fetch_as_chosen(int page) {
  const std::span frame(memory(page), page_at(page).bytes);
  if (slot(page).is_rounded) return store_.fetch_rounded(page_at(page), frame);
  const auto& cast = slot(page).cast;
  return cast ? store_.fetch_cast(page_at(page), frame, *cast) : store_.fetch(page_at(page), frame);
}

std::exception_ptr PageTraffic::finish_first_fetch() {
  const int page = fetching_.front();
  fetching_.pop_front();
  try {
    std::exchange(slot(page).work, {}).wait();
  } catch (...) {
    slot(page).state = PageState::absent;
    drop_frame(page);
    return std::current_exception();
  }
  slot(page).state = PageState::present;
  attach(page);
  return {};
}

void PageTraffic::await_fetch(int page) {
  while (slot(page).state == PageState::fetching) {
    const int first = fetching_.front();
    const auto error = finish_first_fetch();
    // Errors of other pages, which were read ahead, are dropped: they are fetched again when they are needed.
    if (error && first == page) std::rethrow_exception(error);
  }
}

void PageTraffic::read_ahead(const AccessOrder& order, std::size_t max_fetching) {
  const auto known = order.known_ahead();
  for (std::size_t ahead = 1; ahead <= known; ++ahead) {
    if (fetching_.size() >= max_fetching) return;
    const int page = order.expected(ahead);
    if (page == order.boundary()) return;
    if (slot(page).state != PageState::absent) continue;
    if (!make_room_ahead(frame_bytes(page), ahead, order)) return;
    start_fetch(page);
    ++counters_.fetched_ahead;
  }
}

// There are few frames, so reading would pause while present pages are used. Meanwhile the store can read the pages
// after those under way into the system's cache.
void PageTraffic::announce(const AccessOrder& order) {
  std::size_t bytes = 0;
  const auto known = order.known_ahead();
  for (std::size_t ahead = 1; ahead <= known && bytes < options_.announced_bytes; ++ahead) {
    const int page = order.expected(ahead);
    if (page == order.boundary()) return;
    if (slot(page).state != PageState::absent) continue;
    bytes += page_at(page).bytes;
    if (!std::exchange(slot(page).is_announced, true)) store_.announce(page_at(page));
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

void PageTraffic::forget_page(int page) noexcept {
  slot(page).state = PageState::absent;
  slot(page).pins = 0;
  slot(page).is_changed = false;
  drop_frame(page);
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
  for (const auto& position : page_at(page).positions)
    interception::lend_memory(storages_.storage(position.storage), memory(page) + position.offset);
}

void PageTraffic::detach(int page) {
  for (const auto& position : page_at(page).positions)
    interception::take_memory(storages_.storage(position.storage), absence_of(storages_, position.storage));
}

// Room in the frames: which pages leave them, and how changed ones go to the store.

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
