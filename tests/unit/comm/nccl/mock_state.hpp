#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mock_nccl.hpp"

/// The mock's inside: messages between ranks, and communicators that move on when they are asked.
namespace hortator::test {

/// Callable from any thread.
void violation(const std::string& what);

/// Each entry point holds one: a second thread in NCCL is a violation.
class Entered {
 public:
  explicit Entered(const char* call);
  ~Entered();
};

using Bytes = std::vector<std::byte>;

/// Everybody's bytes to everybody, in the order of `ranks` (of MPI_COMM_WORLD); done when all have come.
class Exchange {
 public:
  Exchange(std::vector<int> ranks, int tag, Bytes mine);
  ~Exchange();
  bool move_on();
  const std::vector<Bytes>& all() const { return all_; }

 private:
  std::vector<int> ranks_;
  int tag_;
  Bytes mine_;
  std::vector<Bytes> all_;
  std::vector<bool> has_come_;
  std::vector<MPI_Request> sent_;
};

/// Something under way; returns whether it is done, and in what state the communicator is then.
using Step = std::function<bool(ncclResult_t& state)>;

int next_serial();  ///< numbers what this rank begins
/// A tag of messages, unique among all ranks.
int tag_of(int beginner, int serial);

}  // namespace hortator::test

struct ncclComm {
  std::vector<int> ranks = {};  // of MPI_COMM_WORLD, in the order of this communicator
  int rank = 0;
  int tag = 0;
  std::deque<hortator::test::Step> steps = {};
  int polls_left = 0;
  ncclResult_t state = ncclSuccess;
  bool is_aborted = false;
  bool is_finalized = false;
  bool is_destroyed = false;
  std::map<void*, std::size_t> registered = {};
};

namespace hortator::test {

/// Is `comm` there, alive, and not busy with something else? If not, that is a violation and an answer.
ncclResult_t usable(ncclComm* comm, const char* call);
/// Lets `comm` begin something.
ncclResult_t begin(ncclComm* comm, Step step);
void move_on(ncclComm* comm);
/// As the end of a communicator does, however it ends.
void forget_registrations(ncclComm* comm);
int& group_depth();  ///< of this thread

}  // namespace hortator::test
