#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "paging/stores/store.hpp"

namespace hortator::parallel {

/// Pages of which each rank keeps one part, of the same size, in memory or paged itself. A page comes to all ranks
/// together, by an all_gather, so they have to ask for the same pages in the same order. Before anything travels they
/// compare what they ask for: where they differ, or where one cannot read its part, all of them throw, and each may ask
/// anew.
class PeerStore final : public paging::Store {
 public:
  struct Ranks {
    comm::Communicator& peers;
    int first = 0;  ///< how they are counted in messages
    /// The same ranks, to compare what they ask for where parts are on devices: what a device has compared the host
    /// would wait for. Null: the peers are CPUs.
    const mpi::Communicator* host = nullptr;
  };
  /// This rank's part of page number i is `parts[i]`, and messages call that page `names[i]`.
  PeerStore(const Ranks& ranks, std::vector<at::Tensor> parts, std::vector<std::string> names)
      : ranks_(ranks), parts_(std::move(parts)), names_(std::move(names)) {}

  const at::Tensor& part(std::size_t page) const { return parts_[page]; }

  /// @collective
  comm::Work fetch(const paging::Page& page, std::span<std::byte> frame) override;
  /// Of what ranks have written to their frames, each one's part stays.
  comm::Work publish(const paging::Page& page, std::span<const std::byte> frame) override;
  bool follows_storages() const override { return false; }

  bool take_difference() override { return std::exchange(differed_, false); }

 private:
  void meet(int page, const std::exception_ptr& problem);
  std::vector<std::int64_t> asked_by_all(std::int64_t page) const;
  [[noreturn]] void throw_different(std::span<const std::int64_t> pages) const;

  Ranks ranks_;
  std::vector<at::Tensor> parts_;
  std::vector<std::string> names_;
  bool differed_ = false;
};

}  // namespace hortator::parallel
