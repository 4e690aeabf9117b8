#pragma once

#include <filesystem>
#include <string>

namespace hortator::runtime {

/// The run that this process is part of.
struct Run {
  std::string id = {};  ///< the same on all ranks, unique for each run; empty when the ranks could not agree on one
  std::filesystem::path folder = {};
  int rank = 0;        ///< as the user knows it
  int world_size = 1;  ///< of MPI_COMM_WORLD, which is what a failure ends
  std::string host = {};
  bool is_apart = false;           ///< MPI does not connect the ranks (yet): `rank` is the launcher's
  bool is_foreign_folder = false;  ///< another run uses the folder: this one writes nothing there
  bool is_question = false;        ///< --help: until an Accelerator is made, the records of earlier runs stay
};

Run current_run();

/// A unique name for a run, made of the time, this host and this process.
std::string new_run_id();

/// Starts MPI, names the run and sets its folder: HORTATOR_RUN_DIR, or runs/<program> in the working directory. Removes
/// the records of an earlier run, except for a program that is only asked for its help. The folder is created only when
/// there is something to write. @collective over the world.
void begin_run(std::string_view program, bool is_question = false);

/// Makes `folder` the folder of the run's later files. All ranks call it with the same folder.
void set_run_folder(const std::filesystem::path& folder);

/// Notes that another run uses `folder`: if it is the folder of this run, no record is written.
void leave_run_folder(const std::filesystem::path& folder);
/// Reports to the launcher that the program saves and stops when a signal asks for it. Only rank 0 does.
void publish_that_it_stops();
/// Reports to the launcher that the run was stopped on purpose. Only rank 0 does. Returns false if that fails, or if no
/// launcher asks for it.
bool publish_that_it_has_stopped();

/// Sets the rank by which the user knows this process, when that is not its rank in MPI_COMM_WORLD.
void set_run_rank(int rank);

}  // namespace hortator::runtime
