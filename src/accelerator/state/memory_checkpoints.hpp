#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/error.hpp>
#include <hortator/training/accelerator_options.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/memory/memory_store.hpp"
#include "runtime/world.hpp"

namespace hortator::accelerator {

/// The nodes cannot put a checkpoint in memory together.
class FetchError : public Error {
 public:
  using Error::Error;
};

/// The checkpoints that a run keeps in the memory of its nodes, so that `hortator launch` resumes it after a failure
/// without a step back to the disk.
class MemoryCheckpoints {
 public:
  /// Null unless the options ask for them and `hortator launch` keeps memory for them. Warns on rank 0 where they are
  /// asked for and cannot be had. @collective
  static std::unique_ptr<MemoryCheckpoints> open(const MemoryCheckpointOptions& options, const runtime::World& world,
                                                 const std::filesystem::path& project);

  /// Whether this rank has made enough updates since the last one.
  bool is_due(std::int64_t updates) const { return is_on_ && updates - last_ >= every_; }
  bool is_on() const { return is_on_; }

  /// Saves. Where that fails, rank 0 warns, and none is taken from then on. @collective
  void take(const checkpoint::Snapshot& snapshot, const checkpoint::SaveOptions& options);
  /// Turns them off with a warning of rank 0, unless they are off. The same on all ranks.
  void turn_off(const char* reason);

  /// Those that are at least as new as a checkpoint on disk after `updates_on_disk` updates, newest first. @collective
  std::vector<checkpoint::Recovery> newer_than(std::optional<std::int64_t> updates_on_disk) const;
  /// Puts the checkpoint together on each node, and returns the folder to load. Throws FetchError on all ranks if that
  /// is not possible. @collective
  std::filesystem::path fetch(const checkpoint::Recovery& recovery);
  /// A checkpoint of memory or disk was loaded, which was saved after `updates` updates. @collective
  void note_loaded(std::int64_t updates);

 private:
  MemoryCheckpoints(const MemoryCheckpointOptions& options, const runtime::World& world, checkpoint::MemoryNode node);

  void warn(const std::string& text) const;

  const mpi::Communicator& comm_;
  checkpoint::MemoryStore store_;
  std::int64_t every_;
  std::int64_t last_ = 0;  ///< updates at the last one
  bool is_on_ = true;
};

}  // namespace hortator::accelerator
