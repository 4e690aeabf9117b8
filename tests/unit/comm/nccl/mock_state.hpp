#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mock_nccl.hpp"
#include "mock_truth.hpp"
#include "mock_wire.hpp"

/// The mock's inside: communicators, and the threads that take their calls over.
namespace hortator::test {

/// Each entry point holds one: a second thread in NCCL is a violation.
class Entered {
 public:
  explicit Entered(const char* call);
  ~Entered();
};

int next_serial();  ///< numbers what this rank begins
/// Identifies a communicator among all ranks.
int tag_of(int beginner, int serial);

}  // namespace hortator::test

struct ncclComm {
  std::vector<int> ranks = {};  // of MPI_COMM_WORLD, in the order of this communicator
  int rank = 0;
  int tag = 0;
  int device = 0;
  bool shares = false;  // with its parts, by its config
  std::shared_ptr<std::atomic<bool>> abort_flag = std::make_shared<std::atomic<bool>>(false);
  std::atomic<ncclResult_t> state = ncclSuccess;
  std::thread job = {};  // takes the last call over; joined by the next question
  std::atomic<int> messages = 0;
  std::map<std::pair<int, int>, int> messages_in_pair = {};  // by sender and receiver
  bool is_connected = false;                                 // at the first operation
  bool is_aborted = false;
  bool is_finalized = false;
  bool is_destroyed = false;
  std::map<void*, std::size_t> registered = {};
};

namespace hortator::test {

/// Is `comm` there, alive, and not busy with something else? If not, that is a violation and an answer.
ncclResult_t usable(ncclComm* comm, const char* call);
/// A violation unless the thread's device is `device`, where the truth says that the call uses it.
void check_device(const char* call, int device);
/// The device of the communicators of this process.
std::atomic<int>& home_device();

/// Begins something that a thread of its own takes over.
void begin(ncclComm* comm, std::function<ncclResult_t()> job);
/// For jobs: waits until `is_true`. False if the communicator was aborted before.
bool wait_in_job(const ncclComm* comm, const std::function<bool()>& is_true);
MessageKey next_message(ncclComm* comm);
/// The next message between two of its ranks.
MessageKey next_message(ncclComm* comm, int sender, int receiver);
/// Joins the thread that takes the last call over, if it is done or aborted.
void join_job(ncclComm* comm);

/// As the end of a communicator does, however it ends.
void forget_registrations(ncclComm* comm);

/// The groups of this thread.
struct GroupState {
  int depth = 0;
  bool blocks = false;  ///< holds an abort, whose work is done at the end
};
GroupState& group_state();

}  // namespace hortator::test
