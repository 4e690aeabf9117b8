#pragma once

#include <functional>
#include <string>

#include "checkpoint/write/save_task.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

constexpr int failed_disk_exit_code = 74;  ///< EX_IOERR of sysexits.h

/// Called on a rank whose disk fails within HDF5's collective calls, where the other ranks wait for it forever. It must
/// end the job with the message `problem` and not return.
using EndJob = std::function<void(const std::string& problem)>;
/// Prints `problem` to standard error and aborts the job with failed_disk_exit_code.
[[noreturn]] void end_job_at_once(const std::string& problem);

/// Does what write_part() does, with HDF5's MPI-IO driver: all ranks of a file create its structure together and write
/// to it through HDF5. A disk error on one of several ranks of a file ends the job; if MPI-IO itself hangs, the
/// watchdog ends it. If the rank is the only one of its file, all ranks throw the error. @collective
RankReport write_part_with_mpio(const mpi::Communicator& comm, const SaveTask& task, const EndJob& end_job);

}  // namespace hortator::checkpoint
