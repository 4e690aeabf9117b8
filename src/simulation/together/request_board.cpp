#include "simulation/together/request_board.hpp"

#include <algorithm>
#include <set>

#include "machine/cpu/cpu_set.hpp"
#include "mpi/collectives.hpp"

namespace hortator::simulation {
namespace {

using std::chrono::steady_clock;

/// How long waits sleep before they let MPI progress: longer and longer.
class Naps {
 public:
  std::chrono::microseconds next() {
    const auto now = length_;
    length_ = std::min(2 * length_, std::chrono::microseconds(8000));
    return now;
  }

 private:
  std::chrono::microseconds length_{500};
};

// About 20 us. None where ranks share cores: a rank that polls would delay the one that it waits for.
int polls_of(const mpi::Communicator& ranks) {
  std::set<int> cpus;
  for (const auto& ranges : mpi::all_gather(ranks, machine::to_ranges(machine::own_cpu_set()))) {
    const auto of_rank = machine::from_ranges(ranges);
    cpus.insert(of_rank.begin(), of_rank.end());
  }
  return static_cast<std::size_t>(ranks.size()) <= cpus.size() ? 1000 : 0;
}

}  // namespace

RequestBoard::RequestBoard(const mpi::Communicator& ranks, const mpi::Communicator& all, std::size_t bytes)
    : ranks_(ranks),
      bytes_(bytes),
      spins_(polls_of(ranks)),
      memory_(ranks, all, sizeof(Slot) + sizeof(Common) + bytes, "hortator-infer") {}

bool RequestBoard::put(int rank, const Tensors& tensors) {
  const auto layout = layout_of(tensors);
  if (!layout || bytes_of(*layout) > bytes_) return false;
  copy_to(room(rank), *layout, tensors);
  slot(rank).layout = *layout;
  return true;
}

bool RequestBoard::post(const Tensors& tensors) {
  take_back();
  auto& mine = slot(rank());
  const bool has_room = put(rank(), tensors);
  if (!has_room) mine.layout = {};
  mine.posted_at.store(steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  mine.progress.store(Progress::posted, std::memory_order_seq_cst);
  if (have_all_posted()) {
    common().posts.advance();
  } else {
    common().posts.advance_quietly();  // the last one wakes the server, which has nothing to do before
  }
  return has_room;
}

// The last of several ranks that post at the same time sees all posts.
bool RequestBoard::have_all_posted() const {
  for (int rank = 1; rank < size(); ++rank) {
    if (slot(rank).progress.load(std::memory_order_seq_cst) != Progress::posted) return false;
  }
  return true;
}

// An empty request, which this rank has not waited for.
void RequestBoard::take_back() {
  if (!withdraw() && slot(rank()).progress.load(std::memory_order_acquire) == Progress::taken)
    wait_for_results(steady_clock::now());
  slot(rank()).progress.store(Progress::none, std::memory_order_relaxed);
}

bool RequestBoard::withdraw() {
  auto expected = Progress::posted;
  return slot(rank()).progress.compare_exchange_strong(expected, Progress::returned);
}

// Once the request is taken, its rank waits without a limit: the server computes.
RequestBoard::Progress RequestBoard::wait_for_results(Time deadline) {
  auto& rounds = common().rounds;
  Naps naps;
  for (;;) {
    const auto round = rounds.value();
    const auto progress = slot(rank()).progress.load(std::memory_order_acquire);
    if (progress != Progress::posted && progress != Progress::taken) return progress;
    const auto now = steady_clock::now();
    const bool is_late = now >= deadline;
    if (progress == Progress::posted && is_late && common().collects.load() == 0 && withdraw()) {
      common().posts.advance();  // a server that waits for this rank looks again
      return Progress::returned;
    }
    const Time end_of_nap = now + naps.next();
    rounds.wait_while(round, is_late ? end_of_nap : std::min(deadline, end_of_nap), spins_);
    if (rounds.value() == round) mpi::keep_going(ranks_);
  }
}

RequestBoard::Tensors RequestBoard::results() const { return tensors_in(slot(rank()).layout, room(rank())); }

std::string RequestBoard::reason() const { return slot(rank()).reason.data(); }

std::vector<int> RequestBoard::collect(std::chrono::nanoseconds patience) {
  auto& posts = common().posts;
  common().collects.store(1);
  Time deadline = steady_clock::now() + patience;
  Naps naps;
  for (;;) {
    const auto seen = posts.value();
    for (int rank = 1; rank < size(); ++rank) {
      if (slot(rank).progress.load(std::memory_order_acquire) != Progress::posted) continue;
      const Time posted_at(Time::duration(slot(rank).posted_at.load(std::memory_order_relaxed)));
      deadline = std::min<Time>(deadline, posted_at + patience);
    }
    const auto now = steady_clock::now();
    if (have_all_posted() || now >= deadline) break;
    posts.wait_while(seen, std::min<Time>(deadline, now + naps.next()), spins_);
    if (posts.value() == seen) mpi::keep_going(ranks_);
  }
  std::vector<int> taken;
  for (int rank = 1; rank < size(); ++rank) {
    auto expected = Progress::posted;
    if (slot(rank).progress.compare_exchange_strong(expected, Progress::taken)) taken.push_back(rank);
  }
  common().collects.store(0);
  return taken;
}

RequestBoard::Tensors RequestBoard::tensors(int rank) const { return tensors_in(slot(rank).layout, room(rank)); }

bool RequestBoard::post_results(int rank, const Tensors& results) { return put(rank, results); }

void RequestBoard::finish(int rank, Progress progress, const std::string& reason) {
  auto& one = slot(rank);
  if (one.progress.load(std::memory_order_relaxed) != Progress::taken) return;
  const auto length = std::min(reason.size(), one.reason.size() - 1);
  std::copy_n(reason.begin(), length, one.reason.begin());
  one.reason[length] = '\0';
  one.progress.store(progress, std::memory_order_release);
}

void RequestBoard::leave() { common().rounds.advance(); }

}  // namespace hortator::simulation
