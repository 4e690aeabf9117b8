#pragma once

#include <cstdint>
#include <hortator/accelerator.hpp>
#include <map>
#include <memory>
#include <string>

#include "mpi/communicator.hpp"
#include "simulation/handles.hpp"
#include "simulation/run_buffer.hpp"
#include "simulation/settings/run_settings.hpp"
#include "simulation/trained_model.hpp"

namespace hortator::simulation {

/// A run of a simulation code: an Accelerator, and the models, buffers and arrays of its settings.
class Run : public hortator_run {
 public:
  /// Rank 0 reads its file of settings for all. `comm` is a Fortran handle or HORTATOR_WORLD. @collective
  static std::unique_ptr<Run> begin(int comm, const char* settings);
  explicit Run(RunSettings settings);  ///< @collective

  /// The model or buffer of that name in the settings; made by the first call. @collective
  TrainedModel& model(const char* name);
  RunBuffer& buffer(const char* name);
  /// Saves and restores an array with each checkpoint. @collective
  void keep(const char* name, const hortator_array* array, hortator_distribution distribution);

  /// Whether the run was asked to stop; it was then saved if there was time. @collective
  bool should_stop();
  /// Saves if `every` seconds are over since the last time; at once for 0. Returns whether it has. @collective
  bool save(double every);
  /// Restores the newest good checkpoint; returns false if there is none. @collective
  bool resume();
  /// Completes what is under way. Returns the program's exit code. @collective
  int end();

  Accelerator& accelerator() { return *accelerator_; }
  const mpi::Communicator& comm() const;

 private:
  bool is_between_updates() const;
  /// The name that all ranks have passed. @collective
  std::string common_name(const char* name, const char* what) const;

  RunSettings settings_;
  std::map<std::string, std::unique_ptr<TrainedModel>> models_ = {};
  std::map<std::string, std::unique_ptr<RunBuffer>> buffers_ = {};
  std::map<std::string, bool> kept_ = {};
  bool is_stopping_ = false;
  std::unique_ptr<Accelerator> accelerator_;  ///< last: it gives models their parameters back
};

}  // namespace hortator::simulation
