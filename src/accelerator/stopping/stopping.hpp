#pragma once

#include "accelerator/state/save_pace.hpp"
#include "accelerator/stopping/job_time.hpp"
#include "checkpoint/write/background_save.hpp"
#include "mpi/communicator.hpp"
#include "parallel/data_parallel/step_votes.hpp"

namespace hortator::accelerator {

/// When a run is to save, and when to leave. Clocks and the job's end are rank 0's; signals may come to any rank.
class Stopping {
 public:
  /// `saves` are those beside the program, or none, and outlive this.
  Stopping(const mpi::Communicator& host, const checkpoint::BackgroundSave& saves);

  parallel::StepVotes& votes() { return votes_; }
  SavePace& pace() { return pace_; }
  JobTime& job_time() { return job_time_; }

  /// Whether the ranks leave now, since it was asked for. @collective unless gradients were reduced since the last call
  bool agree_to_stop();
  /// After that: whether there is time to save. @collective
  bool agree_that_save_fits();
  /// Whether rank 0's clock says that a save is due. @collective as agree_to_stop()
  bool agree_to_save() { return votes_.count_save(host_); }
  /// As rank 0 knows them.
  SaveTimes save_times() const;

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
  bool in_seconds_ = false;
  bool leaving_ = false;
};

}  // namespace hortator::accelerator
