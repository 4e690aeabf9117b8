#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/memory/recovery_plan.hpp"

namespace hortator::checkpoint {

/// The limit of a node whose user has set none: half of the memory that would be available without the `held` bytes of
/// checkpoints that are in it already, so that a restart has the limit of the first start. Pure.
std::uint64_t default_limit(std::uint64_t available, std::uint64_t held);

enum class NodeMedium { memory, disk };

/// "memory", "disk"
const char* to_string(NodeMedium medium);

/// The checkpoints in the memory, or on the disk, of one node: folders named checkpoint_<number>, each with a manifest
/// and the data files that the node holds. Local; one process of a node changes it.
class NodeMemory {
 public:
  /// `folder` must exist: it is never created, so that nothing is left of it when its keeper has removed it. Without
  /// `max_bytes`, default_limit() of the memory that is available at the first call that needs room may be used, and
  /// all of a disk.
  NodeMemory(std::filesystem::path folder, std::optional<std::uint64_t> max_bytes,
             NodeMedium medium = NodeMedium::memory);

  std::filesystem::path path(std::int64_t number) const;
  /// What it has with a readable manifest, oldest first. A data file counts if it has its size.
  NodeInventory inventory() const;
  /// The highest number in use, -1 if there is none.
  std::int64_t last_number() const;

  /// Makes `folder` here for a checkpoint with `files`, which need `bytes` bytes, and links to the files `linked` of
  /// checkpoint number `kept`. Reuses the files of an older checkpoint, unless another one shares them, because writing
  /// to memory that a file already has is several times faster. Keeps `kept`, and removes all others and what killed
  /// saves have left. Throws Error unless the bytes fit, into the limit and into the file system.
  void make(const std::filesystem::path& folder, const std::vector<std::string>& files, std::uint64_t bytes,
            std::optional<std::int64_t> kept, const std::vector<std::string>& linked = {});
  /// Makes an empty folder here, for the files of other nodes.
  void make(const std::filesystem::path& folder) const;
  /// Throws Error unless that many more bytes fit.
  void require_room(std::uint64_t bytes);
  /// Removes those of its data files of a checkpoint that have other bytes than were saved. Returns their names.
  std::vector<std::string> remove_damaged(std::int64_t number) const;

 private:
  std::uint64_t used() const;
  void require(std::uint64_t bytes, std::uint64_t room, const std::string& of) const;
  void keep(std::optional<std::int64_t> number, const std::filesystem::path& reused) const;

  std::filesystem::path folder_;
  std::optional<std::uint64_t> max_bytes_;
  NodeMedium medium_;
};

}  // namespace hortator::checkpoint
