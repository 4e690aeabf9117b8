#pragma once

#include <cstdint>
#include <functional>
#include <hortator/training/accelerator_options.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "accelerator/stopping/save_interval.hpp"
#include "accelerator/training/node_checkpoints.hpp"
#include "accelerator/training/project.hpp"
#include "accelerator/training/run_status.hpp"
#include "checkpoint/memory/node_copies.hpp"
#include "checkpoint/write/background_save.hpp"
#include "observe/progress/noted_progress.hpp"
#include "observe/trackers/trackers.hpp"
#include "runtime/identity/folder_lock.hpp"
#include "runtime/world.hpp"

namespace hortator::accelerator {

/// What a run writes: checkpoints in its project's folder, trackers' rows, progress bars and its status.
class RunOutput {
 public:
  /// `on_step` is called after each step of a progress bar's loop. Throws on all ranks if another run uses the
  /// project's folder. @collective
  RunOutput(const AcceleratorOptions& options, const runtime::World& world, std::function<void()> on_step);

  /// Called before a save into the project's folder. Throws UsageError on the main process if another Accelerator of
  /// this job holds the folder. Local.
  void claim_project(const runtime::World& world);

  Project& project() { return project_; }
  const Project& project() const { return project_; }
  checkpoint::BackgroundSave& background_save() { return background_save_; }
  /// Where the run also keeps checkpoints: in the memory of nodes, on their disks.
  const NodeLevels& node_levels() const { return node_levels_; }
  /// The interval of the saves into the project's folder that should_stop() makes.
  SaveInterval& save_interval() { return save_interval_; }
  observe::NotedProgress& progress() { return *progress_; }
  observe::Trackers& trackers() { return trackers_; }
  const observe::Trackers& trackers() const { return trackers_; }
  RunStatus& status() { return status_; }

  /// The node of this rank, if each node keeps checkpoints of its own and there are several.
  const std::optional<checkpoint::OwnNode>& own_node() const { return own_node_; }

  /// For each rank, the number of the checkpoint's file that it writes into; empty until the first save.
  std::vector<std::size_t>& file_of_ranks() { return file_of_ranks_; }

  /// This rank's updates so far, with those of the runs that this one continues.
  std::int64_t updates() const { return updates_before_ + status_.updates(); }
  /// A checkpoint was loaded that was saved after that many updates.
  void resume_after(std::int64_t updates);

  /// The newest checkpoint was loaded: the run continues from there.
  void note_resumed() { resumed_after_ = updates(); }
  std::optional<std::int64_t> resumed_after() const { return resumed_after_; }

  bool is_announced() const { return announced_; }
  void note_announced() { announced_ = true; }

 private:
  Project project_;
  std::optional<runtime::FolderLock> lock_;  ///< on the main process; released after the last save has ended
  checkpoint::BackgroundSave background_save_;
  NodeLevels node_levels_;
  SaveInterval save_interval_;
  std::unique_ptr<observe::NotedProgress> progress_;
  observe::Trackers trackers_;
  RunStatus status_;
  std::optional<checkpoint::OwnNode> own_node_;
  std::vector<std::size_t> file_of_ranks_;
  std::int64_t updates_before_ = 0;  ///< of the loaded checkpoint, less those of this run before loading
  std::optional<std::int64_t> resumed_after_;
  bool announced_ = false;  ///< the banner was printed
};

}  // namespace hortator::accelerator
