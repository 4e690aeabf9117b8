#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mpi/call_check.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// Debug mode: before each collective all ranks compare a hash of what they are about to do, its number and its place
/// in the user's program, in one reduction of 16 bytes. Where ranks differ, all of them throw the table of who called
/// what, in place of a hang or of wrong numbers. Collectives on host values count together with those on tensors.
class CallComparison final : public mpi::CallCheck {
 public:
  /// `comm` is used for the comparison only.
  explicit CallComparison(mpi::Communicator comm) : comm_(std::move(comm)) {}

  const mpi::Communicator& comm() const { return comm_; }

  /// `hash` of this rank's call; `words` say the same. @collective
  void compare(std::uint64_t hash, const std::function<std::string()>& words) const;
  void compare(const mpi::Call& call) const override;

 private:
  mpi::Communicator comm_;
  mutable std::uint64_t sequence_ = 0;
};

}  // namespace hortator::comm
