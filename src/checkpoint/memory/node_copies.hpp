#pragma once

#include <filesystem>

#include "checkpoint/write/save.hpp"
#include "mpi/communicator.hpp"

/// Checkpoints on nodes' own disks, where no file system is shared: each node has a whole one.
namespace hortator::checkpoint {

/// The node of this rank.
struct OwnNode {
  int number = 0;         ///< in the order of the nodes' first ranks
  bool is_leader = true;  ///< the first rank of its node
};

/// The absolute path of a folder on this node to save into, which may differ between nodes. @collective
std::filesystem::path own_target(const mpi::Communicator& comm, const std::filesystem::path& folder);

/// Throws UsageError: nodes that are to have copies of their own see the same folder.
[[noreturn]] void refuse_shared_folder(const std::filesystem::path& folder);

/// Writes `snapshot` to `folder` on each node, whose path may differ between nodes: a node's ranks write their parts,
/// and nodes send each other the files. Returns this node's path. If anything fails on any rank before the folders are
/// complete, all ranks throw the same error and older checkpoints are unchanged; while nodes put them in place, some
/// may have the new one already, which find_copy() deals with. Throws UsageError if nodes share the folder. @collective
std::filesystem::path save_on_each_node(const mpi::Communicator& comm, OwnNode node,
                                        const std::filesystem::path& folder, const Snapshot& snapshot,
                                        SaveOptions options);

/// The folder on this node with the checkpoint that all nodes have at their `folder`, or beside it, where a killed save
/// has left it. What is at rank 0's `folder` comes first. Throws FileError on all ranks if they have none in common.
/// @collective
std::filesystem::path find_copy(const mpi::Communicator& comm, const std::filesystem::path& folder);

}  // namespace hortator::checkpoint
