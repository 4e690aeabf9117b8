#pragma once

#include <cstdint>
#include <hortator/accelerator.hpp>
#include <map>
#include <memory>
#include <string>

#include "mpi/communicator.hpp"
#include "simulation/calls/handles.hpp"
#include "simulation/run_buffer.hpp"
#include "simulation/settings/run_settings.hpp"
#include "simulation/state/log_row.hpp"
#include "simulation/state/partial_resume.hpp"
#include "simulation/state/run_folder_claim.hpp"
#include "simulation/training/trained_model.hpp"

namespace hortator::simulation {

/// A run of a simulation code: an Accelerator, and the models, buffers and arrays of its settings.
class Run : public Handled<hortator_run, Run> {
 public:
  /// Rank 0 reads its file of settings for all. `comm` is a Fortran handle or HORTATOR_WORLD. Throws UsageError on all
  /// ranks if another run has the run's folder. @collective
  static std::unique_ptr<Run> begin(int comm, const char* settings);
  Run(RunSettings settings, std::unique_ptr<RunFolderClaim> folder);  ///< @collective

  /// The model or buffer of that name in the settings; made by the first call. @collective
  TrainedModel& model(const char* name);
  RunBuffer& buffer(const char* name);
  /// Saves and restores an array with each checkpoint. Throws UsageError after resume(). @collective
  void keep(const char* name, const hortator_array* array, hortator_distribution distribution);

  /// Whether the run was asked to stop; it was then saved if there was time. @collective
  bool should_stop();
  /// Saves if `every` seconds are over since the last time; at once for 0. Returns whether it has. @collective
  bool save(double every);
  /// What is the same on all ranks after resume().
  struct Resumed {
    bool has_checkpoint = false;
    std::int64_t left_out = 0;  ///< kept arrays and buffers that the checkpoint does not have
  };
  /// Restores the newest good checkpoint. `partly`: kept arrays and buffers that it does not have keep what they hold;
  /// otherwise that is an error, unless the settings allow it. @collective
  Resumed resume(bool partly);
  /// Gives a number to the trackers, in the row of `step` or in the present one. Local.
  void log(std::optional<std::int64_t> step, const std::string& name, double number);
  /// Completes what is under way. Returns the program's exit code. @collective
  int end();

  Accelerator& accelerator() { return *accelerator_; }
  const mpi::Communicator& comm() const;

 private:
  bool is_between_updates() const;
  void flush_log();
  /// The name that all ranks have passed. @collective
  std::string common_name(const char* name, const char* what) const;

  RunSettings settings_;
  std::unique_ptr<RunFolderClaim> folder_;
  int threads_ = 1;  ///< of the models
  PartialResume partial_resume_;
  std::map<std::string, std::unique_ptr<TrainedModel>> models_ = {};
  std::map<std::string, std::unique_ptr<RunBuffer>> buffers_ = {};
  std::map<std::string, bool> kept_ = {};
  bool was_resumed_ = false;
  bool is_stopping_ = false;
  LogRow log_row_;
  std::unique_ptr<Accelerator> accelerator_;  ///< last: it gives models their parameters back
};

}  // namespace hortator::simulation
