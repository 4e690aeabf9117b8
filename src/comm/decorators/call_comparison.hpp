#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mpi/communicator.hpp"

namespace hortator::comm {

/// Debug mode: before each collective all ranks compare a hash of their call, its sequence number and its call site in
/// the user's program, in one reduction of 16 bytes. Where ranks differ, all of them throw a table of which rank calls
/// what, instead of a hang or wrong results. Collectives on host values and on tensors are counted together.
class CallComparison final : public mpi::CallCheck {
 public:
  /// `comm` is used for the comparison only.
  explicit CallComparison(mpi::Communicator comm) : comm_(std::move(comm)) {}

  const mpi::Communicator& comm() const { return comm_; }

  /// `hash` is that of this rank's call; `text` describes the call. @collective
  void compare(std::uint64_t hash, const std::function<std::string()>& text) const;
  void compare(const mpi::Call& call) const override;

 private:
  mpi::Communicator comm_;
  mutable std::uint64_t sequence_ = 0;
};

}  // namespace hortator::comm
