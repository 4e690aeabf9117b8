#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "checkpoint/write/save.hpp"
#include "checkpoint/write/source.hpp"

namespace hortator::checkpoint {

/// Saves while the program goes on. A thread on each rank writes its part of the copy; the threads never use MPI, which
/// belongs to the program meanwhile: they tell rank 0's by small files beside the checkpoint's, and that one commits.
class BackgroundSave {
 public:
  using Clock = std::chrono::steady_clock;

  BackgroundSave();
  /// Waits for this rank's part of what is under way, and on rank 0 for a while for the others: they may be gone. While
  /// an exception is on its way out it waits for nothing that takes long: what is under way is given up, and a thread
  /// that a disk does not let go ends with the process.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Waits for the save before, copies this rank's part of the state and returns: the folder that will be there.
  /// @collective
  std::filesystem::path start(const mpi::Communicator& comm, const std::filesystem::path& folder,
                              const Snapshot& snapshot, const SaveOptions& options);
  /// Returns when what is under way is there. When that failed on any rank, all throw the same, nothing of it is left
  /// and the older checkpoint is what it was. @collective
  void wait(const mpi::Communicator& comm);

  /// On rank 0, which knows: how long the longest took from start() until it was there. Nothing before one was.
  std::optional<Clock::duration> longest() const;
  /// How long ago the one was begun that is under way; nothing when none is.
  std::optional<Clock::duration> under_way_for() const;

 private:
  class Running;

  bool ends_soon();

  Staging staging_;
  std::unique_ptr<Running> running_;
  std::optional<Clock::duration> longest_;  ///< of those that were waited for
};

}  // namespace hortator::checkpoint
