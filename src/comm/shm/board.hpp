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

/// A tensor's shape, as plain data. If a tensor has more dimensions than there is room for, the last size is the
/// product of the remaining ones.
struct NodeShape {
  std::int32_t dimensions = 0;
  std::array<std::int64_t, 8> sizes{};

  bool operator==(const NodeShape&) const = default;
};

/// A rank's description of the collective that it enters. Plain data: peers read it from shared memory.
struct NodePost {
  enum class Verb : std::int32_t { all_reduce, reduce_scatter, all_gather, broadcast, exchange, barrier, refused };

  Verb verb = Verb::barrier;
  ReduceOp op = ReduceOp::sum;
  std::int32_t type = 0;  ///< at::ScalarType
  std::int32_t root = 0;
  NodeShape shape = {};
  std::int64_t memory = -1;      ///< id of the window's segment that holds the operand; -1: none
  std::int64_t offset = 0;       ///< in bytes, of the operand in the rank's part of the window
  std::array<char, 512> text{};  ///< refused: the reason
};

inline bool is_reduction(NodePost::Verb verb) {
  return verb == NodePost::Verb::all_reduce || verb == NodePost::Verb::reduce_scatter;
}

/// Publishes in shared memory how far each rank of a node has come. Collectives are numbered from 1. The order of loads
/// and stores of this class and its users is modelled in tests/unit/comm/protocol/node_model.cpp: change it there too.
class NodeBoard {
 public:
  static constexpr std::size_t kept = 64;  ///< maximum number of collectives under way

  /// `node`, which must outlive the board, is a part of `all`. Messages number ranks as `all` does. Waits keep MPI
  /// going: it may hold unsent messages, of other communicators as well, for which a rank of the node waits in MPI.
  /// @collective over `all`
  NodeBoard(const mpi::Communicator& node, const mpi::Communicator& all);

  int rank() const { return node_.rank(); }
  int size() const { return node_.size(); }
  /// The number in `all` of a rank of the node.
  int global_rank(int rank) const { return slot(rank).global_rank; }

  /// Publishes that this rank enters its next collective. Returns the collective's number.
  std::uint64_t post(const NodePost& post);
  const NodePost& post_of(int rank, std::uint64_t number) const;
  bool all_arrived(std::uint64_t number) const;
  /// `meanwhile`, if given, is called repeatedly once the wait takes longer than a moment.
  void wait_for_arrival(std::uint64_t number, const std::function<void()>& meanwhile = {}) const;

  /// Publishes that this rank's part of the collective `number` is done.
  void mark_done(std::uint64_t number);
  bool all_done(std::uint64_t number) const;
  void wait_for_done(std::uint64_t number, const std::function<void()>& meanwhile = {}) const;

  /// A barrier of the node's ranks, for the steps within a collective.
  void meet();

  /// Publishes that this rank leaves in the middle of a collective. Ranks that wait for it throw Abandoned with the
  /// first reason.
  void raise_abort(std::string_view reason) noexcept;
  void throw_if_aborted() const;

 private:
  struct alignas(64) Counter {  // a cache line each: ranks that poll one counter do not slow writes to another
    std::atomic<std::uint64_t> value;
  };
  struct RankSlot {
    Counter arrived;
    Counter done;
    Counter met;
    Counter aborted;
    std::int32_t global_rank;
    std::array<char, 256> reason;
    std::array<NodePost, kept> posts;
  };
  RankSlot& slot(int rank) const { return *reinterpret_cast<RankSlot*>(memory_.part(rank)); }
  bool all_reached(Counter RankSlot::*counter, std::uint64_t number) const;
  void wait_for(Counter RankSlot::*counter, std::uint64_t number, const std::function<void()>& meanwhile = {}) const;

  const mpi::Communicator& node_;
  int spins_;
  mpi::SharedMemory memory_;
  std::uint64_t posted_ = 0;
  std::uint64_t meetings_ = 0;
};

}  // namespace hortator::comm
