#pragma once

#include <nccl.h>

#include <chrono>
#include <string>
#include <vector>

/// A stand-in for libnccl: the entry points that we use, in host memory, between the ranks of MPI_COMM_WORLD. It
/// answers as NCCL does where communicators do not block (mock_truth.hpp), and nothing is done early: a thread of its
/// own takes each call over, and the device does operations later, on their stream, unless the communicator's abort
/// flag is set. What NCCL would answer with a hang, a crash, a context on another rank's device or wrong numbers is
/// written down as a violation.
namespace hortator::test {

struct MockNccl {
  // What the test wants of it.
  int version = NCCL_VERSION_CODE;
  std::chrono::microseconds latency{50};         ///< until a call is taken over
  std::chrono::microseconds device_latency{50};  ///< until the device begins an operation
  ncclResult_t async_error = ncclSuccess;        ///< what asking for errors finds from now on
  ncclResult_t memory_error = ncclSuccess;
  bool abort_hangs = false;
  std::chrono::microseconds linger{0};  ///< in each call, so that threads would meet

  // What has happened.
  std::vector<std::string> violations = {};
  int aborted = 0;
  int destroyed = 0;
  int groups = 0;         ///< that held more than one operation
  int memory_blocks = 0;  ///< allocated and not yet freed
  int registrations = 0;
  std::vector<int> id_makers = {};  ///< of the last communicator, by rank in MPI_COMM_WORLD
};

MockNccl& mock_nccl();

/// Between tests: nothing injected, nothing written down. @collective
void reset_mock_nccl();

}  // namespace hortator::test
