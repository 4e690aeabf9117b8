#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "mpi/communicator.hpp"

namespace hortator::comm {

/// Debug mode: before each collective all ranks compare a hash of their call, its sequence number and its call site in
/// the user's program, in one reduction of 16 bytes. Where ranks differ, all of them throw a table of the ranks and
/// their calls, instead of a hang or wrong results. Collectives on host values and on tensors are counted together.
class CallComparison final : public mpi::CallCheck {
 public:
  /// `comm` is used for the comparison only.
  explicit CallComparison(mpi::Communicator comm) : comm_(std::move(comm)) {}

  const mpi::Communicator& comm() const { return comm_; }

  /// A call on tensors.
  struct TensorCall {
    std::string_view verb;
    std::uint64_t hash = 0;    ///< of everything but the shapes
    std::uint64_t shapes = 0;  ///< a hash of them
    std::function<std::string()> text;
  };

  /// @collective
  void compare(const TensorCall& call) const;
  void compare(const mpi::Call& call) const override;

 private:
  mpi::Communicator comm_;
  mutable std::uint64_t sequence_ = 0;
};

}  // namespace hortator::comm
