#include "paging/offload_state.hpp"

#include <exception>
#include <numeric>
#include <optional>
#include <utility>

#include "core/log.hpp"
#include "core/text/units.hpp"
#include "machine/memory/memory_limit.hpp"

namespace hortator {
namespace {

std::uint64_t total_bytes(const std::vector<paging::PageItem>& items) {
  return std::accumulate(items.begin(), items.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const paging::PageItem& item) { return sum + item.bytes; });
}

}  // namespace

Offload::State::State(paging::PagedStorages storages, std::vector<paging::Page> pages,
                      std::unique_ptr<paging::Store> store, const paging::Pager::Options& options,
                      std::uint64_t recycled_bytes)
    : bytes_(total_bytes(storages.items())),
      in_host_(storages.size() == 0 || storages.storage(0).device().is_cpu()),
      recycling_(recycled_bytes),
      pager_(std::in_place, std::move(storages), std::move(pages), std::move(store), options) {}

void Offload::State::remove() {
  if (!pager_) return;
  pager_->release();
  pager_.reset();
}

void Offload::State::remove_if_possible() noexcept {
  if (!pager_ || std::uncaught_exceptions() > 0) return;
  try {
    const auto room = in_host_ ? machine::available_memory() : std::nullopt;
    if (room && *room < bytes_) {
      log::warn("Offloaded parameters of ", units::bytes(bytes_), " do not fit into the available memory of ",
                units::bytes(*room), ": their values are lost");
      return;
    }
    remove();
  } catch (const std::exception& error) {
    log::warn("Offloaded parameters could not be put back into memory, and their values are lost: ", error.what());
  }
}

OffloadCounters Offload::State::counters() const {
  if (!pager_) return {};
  const auto counted = pager_->counters();
  return {.offloaded_bytes = bytes_,
          .resident_bytes = counted.frame_bytes,
          .peak_resident_bytes = counted.peak_frame_bytes,
          .pages_read = counted.fetched,
          .pages_read_ahead = counted.fetched_ahead,
          .pages_written = counted.published};
}

}  // namespace hortator
