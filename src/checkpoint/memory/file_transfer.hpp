#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>

#include "mpi/agree.hpp"
#include "mpi/communicator.hpp"

/// Files that nodes send each other. After a local error a rank goes through all messages nevertheless, so that no
/// other one waits for it.
namespace hortator::checkpoint {

/// Local work between messages: none is done after an error.
class SteadyWork {
 public:
  template <typename Work>
  void run(const Work& work) {
    if (outcome_.failed) return;
    try {
      work();
    } catch (const std::exception& error) {
      outcome_ = mpi::LocalOutcome::of(error);
    }
  }
  const mpi::LocalOutcome& outcome() const { return outcome_; }

 private:
  mpi::LocalOutcome outcome_;
};

/// A file of one rank; without a path, none.
struct FileOfRank {
  std::filesystem::path path = {};
  std::int64_t bytes = 0;
};

/// Sends `mine` to the rank that follows by `distance`, and writes the file of the one that precedes to `theirs`, over
/// what is there. `max_bytes` is the size of the largest one. @collective
void pass_on(const mpi::Communicator& comm, int distance, const FileOfRank& mine, const FileOfRank& theirs,
             std::int64_t max_bytes, SteadyWork& work);

/// Sends a file of `bytes` bytes from rank `root` to all, which write it if they give a path. @collective
void broadcast_file(const mpi::Communicator& comm, int root, const FileOfRank& file, SteadyWork& work);

}  // namespace hortator::checkpoint
