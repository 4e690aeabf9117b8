#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpi/shared_memory.hpp"
#include "runtime/watchdog/slot.hpp"

namespace hortator::runtime {

/// Publishes the status of each rank to the other ranks of the node: a few pages of shared memory for each rank, which
/// only its own watchdog writes. They can be read while that rank is stopped or has ended.
class Board {
 public:
  /// Without shared memory each rank sees only itself, and `blindness()` gives the reason. @collective over the node
  explicit Board(const mpi::Communicator& node);

  int size() const { return size_; }
  int own() const { return own_; }
  const std::string& blindness() const { return blindness_; }

  /// Publishes `slot` and counts a beat: this rank's watchdog is running.
  void publish(const RankRecord& slot);
  /// The number of times that a rank has published.
  std::uint64_t beats(int local_rank) const;

  /// The word in which this rank notes the signal that ends it (last_signal.hpp), and that of another rank.
  std::atomic<int>& own_last_signal() const;
  int last_signal(int local_rank) const;

  /// Asks all ranks of the node for their stacks. The caller publishes its own next, which answers all questions so
  /// far: take_question() does not report them to this rank.
  void ask();
  /// Whether any rank has asked since the last call, or since this board was made.
  bool take_question();

  /// The slots of all ranks that have published, with the current state of their processes.
  std::vector<RankRecord> read() const;

 private:
  struct Page;
  Page* page(int local_rank) const;
  std::optional<RankRecord> read(int local_rank) const;
  std::uint64_t count_questions() const;

  int size_;
  int own_;
  std::string blindness_;
  std::optional<mpi::SharedMemory> memory_;
  std::shared_ptr<Page> alone_;  ///< used where there is no memory_
  std::uint64_t taken_ = 0;      ///< questions of all ranks together
};

}  // namespace hortator::runtime
