#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "comm/abandoned.hpp"
#include "comm/reduce_op.hpp"
#include "mpi/communicator.hpp"
#include "mpi/shared_memory.hpp"

namespace hortator::comm {

/// What a rank says of a collective when it comes to it. Plain data: peers read it from shared memory.
struct NodePost {
  enum class Verb : std::int32_t { all_reduce, reduce_scatter, all_gather, broadcast, barrier, refused };

  Verb verb = Verb::barrier;
  ReduceOp op = ReduceOp::sum;
  std::int32_t type = 0;  ///< at::ScalarType
  std::int32_t root = 0;
  std::int64_t elements = 0;
  std::int64_t memory = -1;      ///< the window that holds the operand, or none
  std::int64_t offset = 0;       ///< in bytes, of the operand in the rank's part of the window
  std::array<char, 512> text{};  ///< refused: why
};

inline bool is_reduction(NodePost::Verb verb) {
  return verb == NodePost::Verb::all_reduce || verb == NodePost::Verb::reduce_scatter;
}

/// How the ranks of a node tell each other where they are, in shared memory. Collectives are numbered from 1 on.
class NodeBoard {
 public:
  static constexpr std::size_t kept = 64;  ///< how many collectives may be under way

  /// `node` is a part of `all`, whose ranks are what messages speak of. @collective over `all`
  NodeBoard(const mpi::Communicator& node, const mpi::Communicator& all);

  int rank() const { return rank_; }
  int size() const { return size_; }
  int name_of(int rank) const { return slot(rank).name; }

  /// This rank has come to its next collective. Returns the number.
  std::uint64_t post(const NodePost& post);
  const NodePost& post_of(int rank, std::uint64_t number) const;
  bool all_arrived(std::uint64_t number) const;
  /// `meanwhile`, if there is one, is called again and again when it takes longer than a moment.
  void wait_for_arrival(std::uint64_t number, const std::function<void()>& meanwhile = {}) const;

  /// This rank's share of the collective `number` is done.
  void mark_done(std::uint64_t number);
  bool all_done(std::uint64_t number) const;
  void wait_for_done(std::uint64_t number, const std::function<void()>& meanwhile = {}) const;

  /// All ranks of the node meet: for the steps within a collective.
  void meet();

  /// This rank leaves in the middle: whoever waits for it throws Abandoned. The first reason counts.
  void raise_abort(std::string_view reason) noexcept;
  void throw_if_aborted() const;

 private:
  struct alignas(64) Counter {  // a cache line for each, or ranks that wait would slow the one that comes
    std::atomic<std::uint64_t> value;
  };
  struct Slot {
    Counter arrived;
    Counter done;
    Counter met;
    Counter aborted;
    std::int32_t name;
    std::array<char, 256> reason;
    std::array<NodePost, kept> posts;
  };
  Slot& slot(int rank) const { return *reinterpret_cast<Slot*>(memory_.part(rank)); }
  bool all_reached(Counter Slot::*counter, std::uint64_t number) const;
  void wait_for(Counter Slot::*counter, std::uint64_t number, const std::function<void()>& meanwhile = {}) const;

  int rank_;
  int size_;
  int spins_;
  mpi::SharedMemory memory_;
  std::uint64_t posted_ = 0;
  std::uint64_t meetings_ = 0;
};

}  // namespace hortator::comm
