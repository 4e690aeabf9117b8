#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/error.hpp>
#include <hortator/training/accelerator_options.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "accelerator/stopping/save_interval.hpp"
#include "checkpoint/memory/memory_store.hpp"
#include "runtime/world.hpp"

namespace hortator::accelerator {

/// The nodes cannot put a checkpoint of theirs together.
class FetchError : public Error {
 public:
  using Error::Error;
};

/// The checkpoints that a run keeps in the memory of its nodes, or on their own disks, so that it resumes after a
/// failure without a step back to the project's newest one.
class NodeCheckpoints {
 public:
  struct Settings {
    SaveInterval interval;
    checkpoint::MemoryLimits limits = {};
  };

  NodeCheckpoints(Settings settings, const runtime::World& world, const std::filesystem::path& folder);

  const char* place() const { return checkpoint::to_string(medium_); }  ///< "memory", "disk"

  /// Whether the next one is due, by this rank's clock.
  bool is_due(std::int64_t updates) const { return is_on_ && interval_.is_due(updates); }
  SaveInterval& interval() { return interval_; }
  bool is_on() const { return is_on_; }

  /// Saves. Where that fails, rank 0 warns, and none is taken from then on. @collective
  void take(const checkpoint::Snapshot& snapshot, const checkpoint::SaveOptions& options);
  /// Turns them off with a warning of rank 0, unless they are off. The same on all ranks.
  void turn_off(const char* reason);

  /// Those that are at least as new as a checkpoint on disk after `updates_on_disk` updates, newest first. @collective
  std::vector<checkpoint::Recovery> newer_than(std::optional<std::int64_t> updates_on_disk) const;
  /// See MemoryStore::repair(). @collective
  checkpoint::MemoryStore::Repair repair(const checkpoint::Recovery& recovery) { return store_.repair(recovery); }
  /// Puts the checkpoint together on each node, and returns the folder to load. Throws FetchError on all ranks if that
  /// is not possible. @collective
  std::filesystem::path fetch(const checkpoint::Recovery& recovery);
  /// A checkpoint of memory or disk was loaded, which was saved after `updates` updates. @collective
  void note_loaded(std::int64_t updates);
  /// The run has finished: removes those that it has taken on disks. Local.
  void end();

 private:
  void warn(const std::string& text) const;

  const mpi::Communicator& comm_;
  std::filesystem::path folder_;
  bool is_leader_;
  checkpoint::NodeMedium medium_;
  checkpoint::MemoryStore store_;
  SaveInterval interval_;
  bool is_on_ = true;
  bool has_taken_ = false;
};

/// The fastest one first.
using NodeLevels = std::vector<std::unique_ptr<NodeCheckpoints>>;

/// Those that the options ask for. In memory there are none unless `hortator launch` keeps memory for them: rank 0
/// warns of that. @collective
NodeLevels open_levels(const AcceleratorOptions& options, const runtime::World& world,
                       const std::filesystem::path& project);

struct RecoveryOfLevel {
  NodeCheckpoints* level;
  checkpoint::Recovery recovery;
};

/// Those of all levels that are at least as new as a checkpoint of the project after `updates` updates, newest first,
/// and of equally new ones the fastest. @collective
std::vector<RecoveryOfLevel> newer_than(const NodeLevels& levels, std::optional<std::int64_t> updates);

}  // namespace hortator::accelerator
