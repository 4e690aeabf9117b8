#pragma once

#include <filesystem>
#include <string>

namespace hortator::runtime {

/// What a process knows of the run that it is part of: there is one of each.
struct Run {
  std::string id = {};  ///< the same on all ranks, another in each run; empty when the ranks could not agree on one
  std::filesystem::path folder = {};
  int rank = 0;        ///< as its user knows it
  int world_size = 1;  ///< of MPI_COMM_WORLD, which is what a failure ends
  std::string host = {};
  bool is_apart = false;  ///< MPI does not connect the ranks (yet): `rank` is the launcher's word
};

Run current_run();

/// A name that no other run has: the time, this host and this process.
std::string new_run_id();

/// Starts MPI, names the run and gives its folder: HORTATOR_RUN_DIR, or runs/<program> below the working directory.
/// What an earlier run has left there of a failure goes. The folder itself is made only when there is something to
/// write. @collective over the world.
void begin_run(std::string_view program);

/// From now on the run's files go to `folder`. Called with the same folder by all ranks.
void set_run_folder(const std::filesystem::path& folder);

/// The rank by which this process is known to its user, when that is not MPI_COMM_WORLD's.
void set_run_rank(int rank);

}  // namespace hortator::runtime
