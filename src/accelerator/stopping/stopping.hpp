#pragma once

#include <functional>
#include <utility>

#include "accelerator/stopping/job_time.hpp"
#include "accelerator/stopping/save_pace.hpp"
#include "checkpoint/write/background_save.hpp"
#include "mpi/communicator.hpp"
#include "parallel/data_parallel/step_votes.hpp"

namespace hortator::accelerator {

/// The checkpoints that are due besides those that the program asks for.
struct DueSaves {
  bool on_nodes = false;
  bool in_project = false;
};

/// Decides when a run saves and when it leaves. Uses rank 0's clock and deadline; signals may come to any rank.
class Stopping {
 public:
  /// `host` and `saves` must outlive this.
  Stopping(const mpi::Communicator& host, const checkpoint::BackgroundSave& saves);

  parallel::StepVotes& votes() { return votes_; }
  SavePace& pace() { return pace_; }
  JobTime& job_time() { return job_time_; }

  /// Whether any rank was asked to leave. @collective unless gradients were reduced since the last call
  bool agree_to_stop();
  /// Whether there is time to save; call it after agree_to_stop(). @collective
  bool agree_that_save_fits();
  /// Whether rank 0's clock says that a save is due. @collective as agree_to_stop()
  bool agree_to_save();
  /// Makes rank 0 vote for a save when `due` says so, too. Call it on all ranks.
  void also_save_when(std::function<DueSaves()> due) { other_saves_ = std::move(due); }
  /// Those of rank 0; call it after agree_to_stop(). @collective if any rank has voted for a save
  DueSaves agree_to_other_saves();
  /// Valid on rank 0.
  SaveTimes save_times() const;

  /// Records that the run leaves; hortator::run then ends with code 75.
  void leave();
  bool is_leaving() const { return leaving_; }

 private:
  parallel::Ballot ballot() const;
  bool time_is_nearly_over() const;
  DueSaves other_saves() const { return other_saves_ ? other_saves_() : DueSaves(); }

  const mpi::Communicator& host_;
  const checkpoint::BackgroundSave& saves_;
  JobTime job_time_;
  SavePace pace_;
  parallel::StepVotes votes_;
  std::function<DueSaves()> other_saves_;
  bool in_seconds_ = false;
  bool leaving_ = false;
};

}  // namespace hortator::accelerator
