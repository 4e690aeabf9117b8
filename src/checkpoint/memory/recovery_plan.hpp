#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Which checkpoints in the memory of nodes can be loaded, and what nodes must send each other before. Pure functions.
namespace hortator::checkpoint {

/// What a node has of a checkpoint in memory.
struct HeldGeneration {
  std::int64_t number = 0;               ///< grows with each checkpoint in memory
  std::int64_t updates = 0;              ///< optimizer steps done
  std::uint32_t manifest = 0;            ///< checksum of its manifest
  std::int64_t state_files = 0;          ///< the first of its data files; the others are frozen ones
  std::vector<bool> files = {};          ///< of each data file of the checkpoint, whether the node has it
  std::vector<std::int64_t> bytes = {};  ///< of each data file

  friend bool operator==(const HeldGeneration&, const HeldGeneration&) = default;
};

using NodeInventory = std::vector<HeldGeneration>;

std::string pack(const NodeInventory& inventory);
NodeInventory unpack_inventory(std::string_view bytes);

/// A checkpoint in memory whose data files are each on some node.
struct Recovery {
  struct Transfer {
    std::size_t file = 0;
    std::int64_t bytes = 0;
    int from = 0;               ///< the lowest node that has it
    std::vector<bool> to = {};  ///< for each node, whether it is missing there

    friend bool operator==(const Transfer&, const Transfer&) = default;
  };

  std::int64_t number = 0;
  std::int64_t updates = 0;
  std::size_t files = 0;                 ///< the number of its data files
  std::size_t state_files = 0;           ///< of those
  int manifest_from = 0;                 ///< the lowest node that has the manifest
  std::vector<bool> manifest_to = {};    ///< for each node, whether it is missing there
  std::vector<Transfer> transfers = {};  ///< of the files that some node is missing

  std::string name_of_file(std::size_t file) const;
  /// The bytes that `node` receives.
  std::int64_t missing_bytes(int node) const;
};

/// The checkpoints that are whole if all nodes put together what they have, newest first. If nodes have different
/// manifests under one number, that of the lowest node counts.
std::vector<Recovery> recoveries(std::span<const NodeInventory> nodes);

}  // namespace hortator::checkpoint
