#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <vector>

#include "comm/work.hpp"
#include "paging/access_order.hpp"
#include "paging/frame_pool.hpp"
#include "paging/page.hpp"
#include "paging/paged_storages.hpp"
#include "paging/stores/store.hpp"

namespace hortator::paging {

/// Moves pages between a store and frames, within a budget: what is needed now, what is expected next, and out what is
/// expected last. A planner of waits as well: what it does depends on the order of calls alone, never on time. Not for
/// several threads at once.
class PageTraffic {
 public:
  struct Options {
    std::size_t budget_bytes = 0;     ///< of frames; what operators have pinned may exceed it
    int fetch_ahead = 2;              ///< pages under way at most
    std::size_t announced_bytes = 0;  ///< of pages after these that the store hears of at most
  };
  struct Counters {
    std::size_t frame_bytes = 0;  ///< now in use: present, coming and leaving
    std::size_t peak_frame_bytes = 0;
    std::uint64_t fetched = 0;        ///< pages
    std::uint64_t fetched_ahead = 0;  ///< of these, before anybody asked
    std::uint64_t published = 0;
  };

  /// All of these are borrowed. The storages of a page that becomes present get its memory.
  PageTraffic(const PagedStorages& storages, const std::vector<Page>& pages, Store& store, const Options& options);
  /// Waits for what is under way; the storages of present pages keep pointers into frames that are gone.
  ~PageTraffic();
  PageTraffic(const PageTraffic&) = delete;
  PageTraffic& operator=(const PageTraffic&) = delete;

  /// Returns with the page present and pinned. What is expected after it is asked for before it is waited for.
  void pin(int page, const AccessOrder& order);
  /// What is expected next is asked for, before anybody needs it.
  void expect(const AccessOrder& order);
  bool is_any_pinned() const;
  void unpin(int page, const AccessOrder& order) noexcept;
  void mark_changed(int page) { slot(page).is_changed = true; }

  /// A frame (or the page's home) for content that somebody will put there, which is then kept as the page's.
  void fill(const Page& page, const std::function<void(std::byte*)>& fill);
  /// Forgets a present page: its storages have got other memory.
  void let_go(int page) noexcept;
  /// What was changed is published, and the store has it; it stays present.
  void publish_changed();
  /// All that is not pinned leaves; only what was published before is kept.
  void evict();
  /// The same, since the store has newer content: what is pinned leaves when it is no more.
  void forget();

  /// The pages were dealt anew; all have left before.
  void start_over();

  const Counters& counters() const { return counters_; }
  /// The memory of a present page.
  std::byte* memory(int page) const;
  void trim_frames() { frames_.trim(0); }

 private:
  enum class State { absent, coming, present, leaving };
  struct Slot {
    State state = State::absent;
    int pins = 0;
    bool is_changed = false;
    bool is_announced = false;
    bool is_outdated = false;  ///< pinned when the store got newer content
    std::uint64_t last_use = 0;
    std::byte* home = nullptr;
    Frame frame = {};
    comm::Work work = {};
  };

  Slot& slot(int page) { return slots_[static_cast<std::size_t>(page)]; }
  const Slot& slot(int page) const { return slots_[static_cast<std::size_t>(page)]; }
  const Page& page_at(int page) const { return pages_[static_cast<std::size_t>(page)]; }

  void bring(int page, const AccessOrder& order);
  void ask_for(int page);
  std::exception_ptr receive_first();
  void await_coming(int page);
  void read_ahead(const AccessOrder& order, std::size_t max_coming);
  void announce(const AccessOrder& order);
  void make_room(std::size_t bytes, const AccessOrder& order);
  bool make_room_ahead(std::size_t bytes, std::size_t distance, const AccessOrder& order);
  bool fits(std::size_t bytes) const { return counters_.frame_bytes + bytes <= options_.budget_bytes; }
  std::size_t frame_bytes(int page) const;
  int farthest(const AccessOrder& order, std::size_t beyond) const;
  void send_off(int page);
  void start_leaving(int page);
  void await_leaving(int page, State then);

  void take_frame(int page);
  void drop_frame(int page) noexcept;
  void attach(int page);
  void detach(int page);

  const PagedStorages& storages_;
  const std::vector<Page>& pages_;
  Store& store_;
  Options options_;
  FramePool frames_;
  std::vector<Slot> slots_;
  std::deque<int> coming_;   ///< in the order of their calls
  std::deque<int> leaving_;  ///< in the order of their calls
  std::size_t leaving_bytes_ = 0;
  std::uint64_t uses_ = 0;
  Counters counters_;
};

}  // namespace hortator::paging
