#pragma once

#include <functional>
#include <utility>

#include "accelerator/stopping/job_time.hpp"
#include "accelerator/stopping/save_pace.hpp"
#include "checkpoint/write/background_save.hpp"
#include "mpi/communicator.hpp"
#include "parallel/data_parallel/step_votes.hpp"

namespace hortator::accelerator {

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
  /// Makes rank 0 vote for a save when `is_due` says so, too. Call it on all ranks.
  void also_save_when(std::function<bool()> is_due) { other_save_is_due_ = std::move(is_due); }
  /// Whether that one is due; call it after agree_to_stop(). @collective if any rank has voted for a save
  bool agree_to_other_save();
  /// Valid on rank 0.
  SaveTimes save_times() const;

  /// Records that the run leaves; hortator::run then ends with code 75.
  void leave();
  bool is_leaving() const { return leaving_; }

 private:
  parallel::Ballot ballot() const;
  bool time_is_nearly_over() const;

  const mpi::Communicator& host_;
  const checkpoint::BackgroundSave& saves_;
  JobTime job_time_;
  SavePace pace_;
  parallel::StepVotes votes_;
  std::function<bool()> other_save_is_due_;
  bool in_seconds_ = false;
  bool leaving_ = false;
};

}  // namespace hortator::accelerator
