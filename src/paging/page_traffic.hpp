#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/work.hpp"
#include "core/text/text.hpp"
#include "paging/access_order.hpp"
#include "paging/cast_history.hpp"
#include "paging/frame_pool.hpp"
#include "paging/stores/paged_storages.hpp"
#include "paging/stores/store.hpp"

namespace hortator::paging {

/// What a use needs of a page's values.
struct PageUse {
  std::optional<at::ScalarType> cast = {};  ///< it casts them to this type
  bool is_exact = false;                    ///< as they are kept, where the store rounds them for operators
};

/// Moves pages between a store and frames, within a budget: fetches what is needed now and what is expected next, and
/// evicts what is expected last. What it does depends only on the order of calls, never on time. Not thread-safe.
class PageTraffic {
 public:
  struct Options {
    std::size_t budget_bytes = 0;     ///< of frames; pages that operators have pinned may exceed it
    int fetch_ahead = 2;              ///< maximum number of pages under way
    std::size_t announced_bytes = 0;  ///< maximum size of the pages after these that are announced to the store
    std::vector<std::span<std::byte>> frames = {};  ///< FramePool::lend
  };
  struct Counters {
    std::size_t frame_bytes = 0;  ///< in use now: present, being fetched or being published
    std::size_t peak_frame_bytes = 0;
    std::uint64_t fetched = 0;          ///< pages
    std::uint64_t fetched_ahead = 0;    ///< of these, before an operator needed them
    std::uint64_t fetched_cast = 0;     ///< of all fetched ones, rounded to autocast's type
    std::uint64_t fetched_rounded = 0;  ///< of all fetched ones, as Store::fetch_rounded()
    std::uint64_t fetched_again = 0;    ///< since they were rounded and a use needed the whole values
    std::uint64_t published = 0;
  };

  /// All arguments are borrowed. When a page becomes present, its storages get its memory.
  PageTraffic(const PagedStorages& storages, const std::vector<Page>& pages, Store& store, Options options);
  /// Waits for pages under way. Leaves the storages of present pages with dangling pointers into frames.
  ~PageTraffic();
  PageTraffic(const PageTraffic&) = delete;
  PageTraffic& operator=(const PageTraffic&) = delete;

  /// Returns with the page present and pinned, with values that are enough for the use. Starts to fetch the pages
  /// expected after it before it waits for it.
  void pin(int page, const AccessOrder& order, const PageUse& use = {});
  /// Starts to fetch the pages expected next.
  void expect(const AccessOrder& order);
  /// Store::advance() while pages are being fetched.
  void advance();
  bool is_any_pinned() const;
  void unpin(int page, const AccessOrder& order) noexcept;
  void mark_changed(int page) { slot(page).is_changed = true; }

  /// Calls `fill` with a frame (or the page's home), and publishes what it has written as the page's content.
  void fill(const Page& page, const std::function<void(std::byte*)>& fill);
  /// Forgets a present page. Must be called when its storages have been given other memory.
  void forget_page(int page) noexcept;
  /// Publishes all changed pages and waits for the store. They stay present.
  void publish_changed();
  /// Drops all pages that are not pinned; changes that were not published are lost.
  void evict();
  /// evict(), because the store has newer content: pinned pages are dropped when they are unpinned.
  void forget();

  /// Must be called when storages have been distributed over the pages again. No page may be present.
  void start_over();

  const Counters& counters() const { return counters_; }
  /// The memory of a present page.
  std::byte* memory(int page) const;
  void trim_frames() { frames_.trim(0); }

 private:
  enum class PageState { absent, fetching, present, publishing };
  struct PageSlot {
    PageState state = PageState::absent;
    int pins = 0;
    bool is_changed = false;
    bool is_announced = false;
    bool is_outdated = false;                 ///< it was pinned when the store got newer content
    std::optional<at::ScalarType> cast = {};  ///< the type to which its values are rounded
    bool is_rounded = false;                  ///< by Store::fetch_rounded()
    CastHistory uses = {};
    std::uint64_t last_use = 0;
    std::byte* home = nullptr;
    Frame frame = {};
    comm::Work work = {};
  };

  PageSlot& slot(int page) { return slots_[static_cast<std::size_t>(page)]; }
  const PageSlot& slot(int page) const { return slots_[static_cast<std::size_t>(page)]; }
  const Page& page_at(int page) const { return pages_[static_cast<std::size_t>(page)]; }

  void load(int page, const AccessOrder& order, const PageUse& use);
  bool is_enough(const PageSlot& present, const PageUse& use) const;
  void drop_exact(int page);
  void fetch_whole(int page);
  void start_fetch(int page, const PageUse& use = {});
  comm::Work fetch_as_chosen(int page);
  std::exception_ptr finish_first_fetch();
  void await_fetch(int page);
  void read_ahead(const AccessOrder& order, std::size_t max_fetching);
  void announce(const AccessOrder& order);
  void make_room(std::size_t bytes, const AccessOrder& order);
  bool make_room_ahead(std::size_t bytes, std::size_t distance, const AccessOrder& order);
  bool fits(std::size_t bytes) const { return frames_.fits(bytes, options_.budget_bytes); }
  bool fits_once_published(std::size_t bytes) const;
  std::size_t frame_bytes(int page) const;
  int farthest(const AccessOrder& order, std::size_t beyond) const;
  void evict_page(int page);
  void start_publishing(int page);
  void await_publication(int page, PageState then);

  void take_frame(int page);
  void drop_frame(int page) noexcept;
  void attach(int page);
  void detach(int page);

  const PagedStorages& storages_;
  const std::vector<Page>& pages_;
  Store& store_;
  Options options_;
  FramePool frames_;
  std::vector<PageSlot> slots_;
  std::deque<int> fetching_;    ///< in the order of their calls
  std::deque<int> publishing_;  ///< in the order of their calls
  std::size_t publishing_bytes_ = 0;
  std::uint64_t uses_ = 0;
  Counters counters_;
};

/// The error when the pointer of a storage that is not in memory is taken.
inline std::string absence_of(const PagedStorages& storages, int storage) {
  return text::concat("The parameter ", text::quote(storages.representative(storage).name),
                      " is not in memory: it is offloaded or sharded, and is fetched when an operator reads it. To use "
                      "its pointer, keep "
                      "a hortator::Pin meanwhile");
}

}  // namespace hortator::paging
