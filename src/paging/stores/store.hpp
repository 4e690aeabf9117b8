#pragma once

#include <cstddef>
#include <span>

#include "comm/work.hpp"
#include "paging/page.hpp"

namespace hortator::paging {

/// Where pages are while they are not in memory. The pager calls it from whichever thread runs an operator, one call
/// at a time, in an order that depends on nothing but the order in which pages are used (never on time): if ranks use
/// the same pages in the same order, they make the same calls.
///
/// A frame, and the description of its page, belong to the store from the call until the Work has been waited for.
/// Works are waited for in the order of their calls, fetches and publications each; a page is fetched only after its
/// publication has been waited for. What a call or its Work throws comes out of the operator that needs the page; the
/// page stays absent, and may be asked for again.
class Store {
 public:
  virtual ~Store() = default;

  /// Starts to fill `frame` (page.bytes long) with the page.
  virtual comm::Work fetch(const Page& page, std::span<std::byte> frame) = 0;

  /// The page will be fetched before long, after those that are under way: the time to do what needs no frame.
  virtual void announce(const Page& /*page*/) {}

  /// Starts to keep what is in `frame` as the page's new content. The frame stays as it is meanwhile.
  virtual comm::Work publish(const Page& page, std::span<const std::byte> frame) = 0;

  /// Memory in which the page lies whether or not it is present, where a store has that (a window that the ranks of a
  /// node share): the page gets no frame of its own, and fetch() only has to see to it that all of it is there. Null:
  /// it has none.
  virtual std::byte* home(const Page& /*page*/) { return nullptr; }

  /// Has a fetch thrown on all who bring pages together, since one could not, or asked for another page? All of them
  /// begin anew then, so that they make the same calls again. Told once.
  virtual bool take_difference() { return false; }

  /// May pages be dealt anew once the order of use is known? A store that keeps pages as a whole says no.
  virtual bool follows_storages() const = 0;
};

}  // namespace hortator::paging
