#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/write/save.hpp"
#include "checkpoint/write/tensor_source.hpp"

namespace hortator::checkpoint {

/// Saves while the program continues. A thread on each rank writes that rank's part of a copy of the state. The threads
/// do not use MPI, which the program uses meanwhile: they report to rank 0's thread through small files in the
/// checkpoint's folder, and that thread commits.
class BackgroundSave {
 public:
  using Clock = std::chrono::steady_clock;

  BackgroundSave();
  /// Waits until this rank's part is written, and on rank 0 for a limited time for the other ranks, which may have
  /// ended. During stack unwinding it gives the save up instead of waiting long; a thread that is stuck in a disk
  /// operation then ends with the process.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Waits for the previous save, copies this rank's part of the state and starts to write it. Returns the folder that
  /// will hold the checkpoint.
  /// @collective
  std::filesystem::path start(const mpi::Communicator& comm, const std::filesystem::path& folder,
                              const Snapshot& snapshot, const SaveOptions& options);
  /// Returns when the save in progress is complete. If it failed on any rank, all ranks throw the same error, its files
  /// are removed and the older checkpoint is unchanged. @collective
  void wait(const mpi::Communicator& comm);

  /// The longest time from start() to the complete checkpoint. Nothing on other ranks than 0, and before the first save
  /// is complete.
  std::optional<Clock::duration> longest() const;
  /// The folders of the saves that have become complete since the last call, in their order; on other ranks than 0
  /// nothing. Local.
  std::vector<std::filesystem::path> take_completed();
  /// How long ago the save in progress was started; nothing if there is none.
  std::optional<Clock::duration> under_way_for() const;

 private:
  class Running;

  bool ends_soon();
  void note_completed(Running& save);

  StagingMemory staging_;
  std::unique_ptr<Running> running_;
  std::vector<std::filesystem::path> completed_;  ///< and not yet taken
  std::optional<Clock::duration> longest_;        ///< among the saves that wait() has ended
};

}  // namespace hortator::checkpoint
