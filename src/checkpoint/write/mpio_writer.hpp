#pragma once

#include <functional>
#include <string>

#include "checkpoint/write/direct_writer.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

constexpr int failed_disk_exit_code = 74;  ///< EX_IOERR of sysexits.h

/// What a rank does whose disk has failed within HDF5's collective calls, in which the other ranks now wait for it for
/// ever: it ends the job with these words, and does not come back.
using EndJob = std::function<void(const std::string& problem)>;
/// A line on standard error, and that exit code.
[[noreturn]] void end_job_at_once(const std::string& problem);

/// Does what write_part() does through HDF5's MPI driver: all ranks of a file make its structure and write into it with
/// HDF5. Where they are several, an error of the disk on one of them ends the job (or else, where MPI-IO itself hangs,
/// the watchdog does); where a rank has a file to itself, all throw it. @collective
Record write_part_together(const mpi::Communicator& comm, const Task& task, const EndJob& end_job);

}  // namespace hortator::checkpoint
