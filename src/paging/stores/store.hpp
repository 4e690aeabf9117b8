#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <optional>
#include <span>

#include "comm/work.hpp"
#include "paging/stores/paged_storages.hpp"

namespace hortator::paging {

/// Where pages are while they are not in memory. The pager calls it from the thread that runs an operator, one call at
/// a time, in an order that depends only on the order in which pages are used (never on time): if ranks use the same
/// pages in the same order, they make the same calls.
///
/// A frame, and the description of its page, belong to the store from the call until its Work has been waited for.
/// Works are waited for in the order of their calls, separately for fetches and publications; a page is fetched only
/// after its publication has been waited for. The operator that needs the page throws what a call or its Work throws;
/// the page stays absent, and may be fetched again.
class Store {
 public:
  virtual ~Store() = default;

  /// Starts to fill `frame` (page.bytes long) with the page.
  virtual comm::Work fetch(const Page& page, std::span<std::byte> frame) = 0;

  /// Whether fetch_cast() sends less than fetch() for operators that cast the page to `type`.
  virtual bool can_cast(const Page& /*page*/, at::ScalarType /*type*/) const { return false; }
  /// As fetch(), for operators that cast the page to `type`: its values may be rounded to that type. Called only where
  /// can_cast().
  virtual comm::Work fetch_cast(const Page& page, std::span<std::byte> frame, at::ScalarType /*type*/) {
    return fetch(page, frame);
  }

  /// Whether fetch_rounded() sends less than fetch().
  virtual bool can_round(const Page& /*page*/) const { return false; }
  /// As fetch(), for operators that only read the page: its values may be rounded, to the same ones on all ranks that
  /// share the store. Called only where can_round().
  virtual comm::Work fetch_rounded(const Page& page, std::span<std::byte> frame) { return fetch(page, frame); }

  /// Drives fetches that are under way, without waiting. Called often.
  virtual void advance() {}

  /// The page will be fetched soon, after those that are under way. A hint to do what needs no frame.
  virtual void announce(const Page& /*page*/) {}

  /// Starts to store `frame` as the page's new content. The frame does not change meanwhile.
  virtual comm::Work publish(const Page& page, std::span<const std::byte> frame) = 0;

  /// Memory of the store in which the page always lies (a window that the ranks of a node share), or null. Such a page
  /// gets no frame, and fetch() only has to ensure that all of it is there.
  virtual std::byte* home(const Page& /*page*/) { return nullptr; }

  /// Returns true once after a fetch failed or diverged on any rank that shares the store. All of them must then start
  /// over, so that they make the same calls again.
  virtual bool take_divergence() { return false; }

  /// Whether fetches are @collective over ranks that each keep a part of a page.
  virtual bool needs_ranks() const { return false; }

  /// Whether storages may be distributed over the pages again once the order of use is known. False for a store that
  /// keeps whole pages.
  virtual bool follows_storages() const = 0;
};

}  // namespace hortator::paging
