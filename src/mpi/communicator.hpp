#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "core/activity/activity.hpp"
#include "mpi/call_check.hpp"

namespace hortator::mpi {

/// Owns an MPI communicator. Move-only: a copy would hide a collective. MPI errors on it come back as exceptions.
class Communicator {
 public:
  /// A duplicate of MPI_COMM_WORLD, so that our messages never meet the application's. A family of its own. @collective
  static Communicator world();
  /// A duplicate of somebody else's communicator. A family of its own. @collective
  static Communicator duplicate(MPI_Comm other);

  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm get() const { return comm_; }
  /// Every collective is entered here, so that a rank that stays away can be named.
  const activity::Membership& membership() const { return membership_; }

  /// From now on ranks compare their calls before each collective. It is this communicator's alone, not that of what is
  /// made of it. @collective
  void check_calls(std::shared_ptr<const CallCheck> check) const { check_ = std::move(check); }

  /// Ranks with the same color, ordered by key. @collective
  Communicator split(int color, int key) const;
  /// The first `count` ranks. @collective over these alone
  Communicator first(int count) const;
  /// The ranks that share this rank's memory, in rank order. @collective
  Communicator node() const;

 private:
  friend class CollectiveScope;

  /// Agrees on a number for itself: 8 bytes from its first rank. Family 0: its own. @collective
  Communicator(MPI_Comm owned, std::uint64_t family);
  void free() noexcept;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  activity::Membership membership_;
  mutable std::shared_ptr<const CallCheck> check_;
  mutable int depth_ = 0;  ///< of collectives within collectives
};

}  // namespace hortator::mpi
