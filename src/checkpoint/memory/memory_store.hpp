#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/memory/file_transfer.hpp"
#include "checkpoint/memory/node_memory.hpp"
#include "checkpoint/memory/recovery_plan.hpp"
#include "checkpoint/write/frozen_tensors.hpp"
#include "checkpoint/write/save.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// The node of this rank, among those that keep checkpoints in memory.
struct MemoryNode {
  std::filesystem::path folder = {};  ///< exists on each node; the path may differ
  int node = 0;                       ///< in the order of the nodes' first ranks
  int nodes = 1;
  bool is_leader = true;  ///< the first rank of its node
};

struct MemoryLimits {
  int partners = 1;                             ///< the number of other nodes that hold a copy of each node's file
  std::optional<std::uint64_t> max_bytes = {};  ///< of a node
  NodeMedium medium = NodeMedium::memory;
};

/// The two newest checkpoints of a run in the memory, or on the disks, of its nodes. Each node's ranks write one data
/// file, and one for frozen tensors; the nodes that follow it hold copies. A checkpoint counts once all ranks have
/// agreed that it is written.
class MemoryStore {
 public:
  /// `comm` must outlive this. Throws UsageError on all ranks if a node's folder is missing. @collective
  MemoryStore(const mpi::Communicator& comm, MemoryNode node, MemoryLimits limits);

  /// Writes a checkpoint. If anything fails on any rank, all ranks throw the same error; the newest checkpoint before
  /// is unchanged. @collective
  void save(const Snapshot& snapshot, SaveOptions options);

  /// What can be loaded, newest first; the same on all ranks. @collective
  std::vector<Recovery> recoveries() const;
  /// Sends each node the files that it is missing, and returns the folder that this rank loads. Throws on all ranks if
  /// a node has no room, or a file cannot be read. @collective
  std::filesystem::path fetch(const Recovery& recovery);
  /// What a checkpoint that could not be loaded becomes without the data files that have other bytes than were saved:
  /// nodes that hold good copies send those. No recovery if no file is damaged, or one has no good copy. @collective
  struct Repair {
    std::optional<Recovery> recovery = {};
    std::vector<std::string> damaged_hosts = {};  ///< that held damaged files; the same on all ranks
  };
  Repair repair(const Recovery& recovery);
  /// Removes what fetch() has added. @collective
  void drop_fetched();

 private:
  std::optional<FrozenFiles> share(const FrozenTensors& frozen, SaveOptions options) const;
  void write(const SaveTask& task, std::int64_t number, const std::vector<std::string>& linked);
  void copy_to_partners(const SaveTask& task, const std::string& json);
  void receive(const Recovery& recovery, SteadyWork& work);
  std::size_t held_by(int distance) const;
  std::vector<std::string> files_here(const Layout& layout) const;
  std::vector<std::string> frozen_here() const;
  std::uint64_t bytes_here(const Layout& layout) const;

  const mpi::Communicator& comm_;
  MemoryNode node_;
  MemoryLimits limits_;
  mpi::Communicator leaders_;  ///< on other ranks: the ranks that are no leaders
  std::vector<std::size_t> file_of_;
  NodeMemory memory_;
  std::int64_t next_number_ = 0;
  std::optional<std::int64_t> whole_ = {};  ///< the newest checkpoint that all ranks know to be whole
  std::vector<std::filesystem::path> fetched_;
};

}  // namespace hortator::checkpoint
