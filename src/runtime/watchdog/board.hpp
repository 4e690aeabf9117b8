#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpi/shared_memory.hpp"
#include "runtime/watchdog/slot.hpp"

namespace hortator::runtime {

/// Where the ranks of a node show each other what they do: a page or so each in shared memory, written by its rank's
/// watchdog alone. Reading another rank's needs nothing of that rank, which may be stopped or gone.
class Board {
 public:
  /// Without shared memory each rank sees itself alone, and `blindness()` says why. @collective over the node
  explicit Board(const mpi::Communicator& node);

  int size() const { return size_; }
  int own() const { return own_; }
  const std::string& blindness() const { return blindness_; }

  /// Shows `slot`, and that this rank's watchdog is awake.
  void publish(const Slot& slot);
  /// How often a rank has published.
  std::uint64_t beats(int local_rank) const;

  /// Asks all ranks of the node for their stacks. The caller publishes its own next, which answers all questions so far:
  /// take_question() does not report them to this rank.
  void ask();
  /// Whether any rank has asked since the last call, or since this board was made.
  bool take_question();

  /// All slots that are there, with their processes' lives as they are now.
  std::vector<Slot> read() const;

 private:
  struct Page;
  Page* page(int local_rank) const;
  std::optional<Slot> read(int local_rank) const;
  std::uint64_t count_questions() const;

  int size_;
  int own_;
  std::string blindness_;
  std::optional<mpi::SharedMemory> memory_;
  std::shared_ptr<Page> alone_;  ///< in place of memory_
  std::uint64_t taken_ = 0;      ///< questions of all ranks together
};

}  // namespace hortator::runtime
