#pragma once

#include <cstdint>
#include <hortator/bigmodel/offload.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "machine/memory/recycling_allocator.hpp"
#include "paging/pager.hpp"
#include "paging/stores/paged_storages.hpp"

namespace hortator {

/// The pager behind an Offload, until it is removed.
class Offload::State {
 public:
  State(paging::PagedStorages storages, std::vector<paging::Page> pages, std::unique_ptr<paging::Store> store,
        const paging::Pager::Options& options, std::uint64_t recycled_bytes);

  void remove();
  /// remove() for the end of a scope: does not throw, and does nothing if there is not enough memory.
  void remove_if_possible() noexcept;
  OffloadCounters counters() const;

 private:
  std::uint64_t bytes_;
  bool in_host_;  ///< whether the values go back into the memory of the host
  machine::RecyclingAllocator recycling_;
  std::optional<paging::Pager> pager_;
};

}  // namespace hortator
