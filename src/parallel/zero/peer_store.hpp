#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "interception/claimed_operators.hpp"
#include "mpi/communicator.hpp"
#include "paging/stores/store.hpp"

namespace hortator::parallel {

/// Pages that are divided among ranks: each keeps one part, all of the same size, in memory or paged itself. All ranks
/// fetch a page together, by an all_gather, so they must fetch the same pages in the same order. Before data travels
/// they compare what they fetch: if they differ, or if one cannot read its part, all of them throw, and each may fetch
/// again. Parts do not change by what travels of them.
class PeerStore final : public paging::Store {
 public:
  struct Ranks {
    comm::Communicator& peers;
    int first = 0;   ///< the first of these ranks among all, for messages
    int stride = 1;  ///< between these ranks among all
    /// The same ranks, to compare what they fetch when parts are on devices: the host would have to wait for a
    /// comparison on the device. Null if the peers are CPUs.
    const mpi::Communicator* host = nullptr;
    /// Whether parts in fp32 are sent in a 16-bit type to operators that cast them to it.
    bool casts = false;
  };
  /// What this rank keeps of a page.
  struct OwnedPart {
    at::Tensor values;
    std::string name;      ///< the page's, in messages
    bool is_int8 = false;  ///< operators that only read it get int8 blocks; it consists of whole ones
  };
  /// `parts[i]` is of page number i.
  PeerStore(const Ranks& ranks, std::vector<OwnedPart> parts) : ranks_(ranks), parts_(std::move(parts)) {}

  /// @collective
  comm::Work fetch(const paging::Page& page, std::span<std::byte> frame) override;
  bool can_cast(const paging::Page& page, at::ScalarType type) const override;
  /// Each rank rounds its part before it sends it, so half as many bytes travel. @collective
  comm::Work fetch_cast(const paging::Page& page, std::span<std::byte> frame, at::ScalarType type) override;
  bool can_round(const paging::Page& page) const override { return part(page).is_int8; }
  /// Each rank packs its part, and unpacks those of all, its own as well: all of them get the same values. @collective
  comm::Work fetch_rounded(const paging::Page& page, std::span<std::byte> frame) override;
  void advance() override { ranks_.peers.advance(); }
  /// Keeps this rank's part of the frame.
  comm::Work publish(const paging::Page& page, std::span<const std::byte> frame) override;
  bool needs_ranks() const override { return true; }
  bool follows_storages() const override { return false; }

  bool take_divergence() override { return std::exchange(diverged_, false); }

 private:
  enum class PartsTravel { whole, cast, int8 };
  static constexpr std::int64_t ways_to_travel = 3;
  struct HeldPart {
    std::shared_ptr<interception::Hold> present = {};
    at::Tensor rounded = {};
  };
  const OwnedPart& part(const paging::Page& page) const { return parts_[static_cast<std::size_t>(page.number)]; }
  /// @collective
  HeldPart hold_on_all(const paging::Page& page, PartsTravel travel, at::ScalarType type = at::kFloat);
  /// @collective
  void agree_on(std::int64_t request, const std::exception_ptr& problem);
  std::string description_of(std::int64_t request) const;
  std::vector<std::int64_t> requests_of_all(std::int64_t request) const;
  [[noreturn]] void throw_different(std::span<const std::int64_t> requests) const;

  Ranks ranks_;
  std::vector<OwnedPart> parts_;
  bool diverged_ = false;
};

}  // namespace hortator::parallel
