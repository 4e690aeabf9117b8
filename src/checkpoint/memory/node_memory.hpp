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

/// The checkpoints in the memory of one node: folders of a file system in memory, named checkpoint_<number>, each with
/// a manifest and the data files that the node holds. Local; one process of a node changes it.
class NodeMemory {
 public:
  /// `folder` must exist: it is never created, so that nothing is left of it when its keeper has removed it. Without
  /// `max_bytes`, default_limit() of the memory that is available at the first call that needs room may be used.
  NodeMemory(std::filesystem::path folder, std::optional<std::uint64_t> max_bytes);

  std::filesystem::path path(std::int64_t number) const;
  /// What it has with a readable manifest, oldest first. A data file counts if it has its size.
  NodeInventory inventory() const;
  /// The highest number in use, -1 if there is none.
  std::int64_t last_number() const;

  /// Makes `folder` here for a checkpoint with `files`, which need `bytes` bytes. Reuses the files of an older
  /// checkpoint, because writing to memory that a file already has is several times faster. Keeps checkpoint number
  /// `kept`, and removes all others and what killed saves have left. Throws Error unless the bytes fit, into the limit
  /// and into the file system.
  void make(const std::filesystem::path& folder, const std::vector<std::string>& files, std::uint64_t bytes,
            std::optional<std::int64_t> kept);
  /// Makes an empty folder here, for the files of other nodes.
  void make(const std::filesystem::path& folder) const;
  /// Throws Error unless that many more bytes fit.
  void require_room(std::uint64_t bytes);

 private:
  std::uint64_t used() const;
  void keep(std::optional<std::int64_t> number, const std::filesystem::path& reused) const;

  std::filesystem::path folder_;
  std::optional<std::uint64_t> max_bytes_;
};

}  // namespace hortator::checkpoint
