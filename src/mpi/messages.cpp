#include "mpi/messages.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "mpi/environment.hpp"
#include "mpi/native.hpp"
#include "mpi/rehearsed_world.hpp"

namespace hortator::mpi {
namespace {

constexpr std::size_t max_bytes = std::size_t{1} << 30;  // of one call of MPI

/// Polls, then yields the core, then sleeps between polls: other ranks may need the core.
class Patience {
 public:
  void wait() {
    constexpr int polls_before_yielding = 200, polls_before_sleeping = 2000;
    ++polls_;
    if (polls_ < polls_before_yielding) return;
    if (polls_ < polls_before_sleeping) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  int polls_ = 0;
};

}  // namespace

// Each rank derives the memberships of all pairs, in the same order, and keeps those of its own.
Messages::Messages(const Communicator& ranks) : ranks_(ranks.split(0, ranks.rank())) {
  for (int first = 0; first < size(); ++first) {
    auto forward = ranks_.membership().derive(2 * first, 2), backward = ranks_.membership().derive(2 * first + 1, 2);
    if (first == rank()) {
      to_next_ = std::move(forward);
      from_next_ = std::move(backward);
    } else if ((first + 1) % size() == rank()) {
      from_previous_ = std::move(forward);
      to_previous_ = std::move(backward);
    }
  }
}

Messages::~Messages() {
  if (!is_usable()) return;
  for (auto& one : sent_) {
    int is_done = 0;
    MPI_Test(native(one.request), &is_done, MPI_STATUS_IGNORE);
    if (is_done == 0) new (std::nothrow) std::shared_ptr<const void>(std::move(one.keeps));  // MPI may still read it
  }
}

int Messages::rank_of(Peer peer) const { return (rank() + (peer == Peer::next ? 1 : size() - 1)) % size(); }

// NOLINTNEXTLINE(performance-unnecessary-value-param): callers give it away
void Messages::send(Peer to, int tag, std::span<const std::byte> bytes, std::shared_ptr<const void> keeps) {
  { const activity::Collective here(to == Peer::next ? to_next_ : to_previous_, "send to a stage", bytes.size()); }
  if (is_rehearsed(ranks_)) return;
  for (std::size_t begin = 0; begin < bytes.size(); begin += max_bytes) {
    const auto piece = bytes.subspan(begin, std::min(max_bytes, bytes.size() - begin));
    auto& one = sent_.emplace_back();
    one.keeps = keeps;
    check(MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, rank_of(to), tag, native(ranks_),
                    native(one.request)),
          "MPI_Isend");
  }
  advance();
}

void Messages::receive(Peer from, int tag, std::span<std::byte> into) {
  const activity::Collective here(from == Peer::next ? from_next_ : from_previous_, "wait for a stage", into.size());
  if (is_rehearsed(ranks_)) return;
  for (std::size_t begin = 0; begin < into.size(); begin += max_bytes) {
    const auto piece = into.subspan(begin, std::min(max_bytes, into.size() - begin));
    Request request;
    check(MPI_Irecv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, rank_of(from), tag, native(ranks_),
                    native(request)),
          "MPI_Irecv");
    Patience patience;
    while (!request.is_complete()) patience.wait();
  }
  advance();
}

bool Messages::has_arrived(Peer from, int tag) {
  if (is_rehearsed(ranks_)) return true;
  advance();
  int is_there = 0;
  check(MPI_Iprobe(rank_of(from), tag, native(ranks_), &is_there, MPI_STATUS_IGNORE), "MPI_Iprobe");
  return is_there != 0;
}

void Messages::advance() {
  std::erase_if(sent_, [](Sent& one) { return one.request.is_complete(); });
}

void Messages::finish() {
  Patience patience;
  for (advance(); !sent_.empty(); advance()) patience.wait();
}

}  // namespace hortator::mpi
