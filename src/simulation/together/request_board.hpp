#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"
#include "mpi/shared_memory.hpp"
#include "simulation/together/request_layout.hpp"
#include "simulation/together/shared_counter.hpp"

namespace hortator::simulation {

/// Memory in which ranks of a node post tensors, and the first of them posts the results. Each rank has one request at
/// a time. Waits let MPI progress, and sleep.
class RequestBoard {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Time = SharedCounter::Time;

  /// What has become of a request. The server changes posted to taken, and taken to one of the last three.
  enum class Progress : std::uint32_t {
    none,
    posted,
    taken,
    done,      ///< the results are on the board
    returned,  ///< its rank computes them
    refused    ///< none of the ranks may compute like this; reason() says why
  };

  /// `bytes` for the tensors of each rank. `ranks` are ranks of a node, a part of `all`. @collective over `all`
  RequestBoard(const mpi::Communicator& ranks, const mpi::Communicator& all, std::size_t bytes);

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }

  // --- for the ranks that ask ---

  /// Posts copies of the tensors. False if there is no room for them: then the server does not wait for this rank
  /// either.
  bool post(const Tensors& tensors);
  /// Waits for the server. If it is away when `deadline` comes, the request is withdrawn, which counts as returned.
  Progress wait_for_results(Time deadline);
  /// The results of a request that is done. They are in the board's memory until the next post().
  Tensors results() const;
  std::string reason() const;

  // --- for the server, rank 0 ---

  /// Shows that the server is here, and waits until all ranks have posted, or the time `patience` is over for itself or
  /// a rank that has posted. Takes what is posted; returns the ranks.
  std::vector<int> collect(std::chrono::nanoseconds patience);
  const RequestLayout& layout(int rank) const { return slot(rank).layout; }
  Tensors tensors(int rank) const;
  /// Posts results for a rank; false if there is no room for them.
  bool post_results(int rank, const Tensors& results);
  /// Ends a request that is taken; does nothing for one that has ended.
  void finish(int rank, Progress progress, const std::string& reason = {});
  /// Wakes the ranks, and shows that the server is away.
  void leave();

 private:
  /// The part of a rank: this, then its tensors.
  struct alignas(64) Slot {
    std::atomic<Progress> progress;
    std::atomic<std::int64_t> posted_at;  ///< nanoseconds of the steady clock, which the processes of a node share
    RequestLayout layout;                 ///< of the tensors, then of the results
    std::array<char, 512> reason;
  };
  /// In the part of the server beside its slot.
  struct alignas(64) Common {
    alignas(64) SharedCounter posts;
    alignas(64) SharedCounter rounds;
    alignas(64) std::atomic<std::uint32_t> collects;  ///< 1: the server is here, and takes what is posted soon
  };

  Slot& slot(int rank) const { return *reinterpret_cast<Slot*>(memory_.part(rank)); }
  Common& common() const { return *reinterpret_cast<Common*>(memory_.part(0) + sizeof(Slot)); }
  std::byte* room(int rank) const { return memory_.part(rank) + sizeof(Slot) + sizeof(Common); }
  bool put(int rank, const Tensors& tensors);
  bool have_all_posted() const;
  bool withdraw();
  void take_back();

  const mpi::Communicator& ranks_;
  std::size_t bytes_;
  int spins_;
  mpi::SharedMemory memory_;
};

}  // namespace hortator::simulation
