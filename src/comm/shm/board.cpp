#include "comm/shm/board.hpp"

#include <algorithm>
#include <set>

#include "comm/shm/wait.hpp"
#include "machine/cpu/cpu_set.hpp"
#include "mpi/collectives.hpp"
#include "runtime/identity/shared_name.hpp"

namespace hortator::comm {
namespace {

// About 20 us, longer than a message takes. None where ranks share cores: a rank that spins would delay the one that it
// waits for.
int spins_for(const mpi::Communicator& node) {
  std::set<int> cpus;
  for (const auto& ranges : mpi::all_gather(node, machine::to_ranges(machine::own_cpu_set()))) {
    const auto of_rank = machine::from_ranges(ranges);
    cpus.insert(of_rank.begin(), of_rank.end());
  }
  return static_cast<std::size_t>(node.size()) <= cpus.size() ? 1000 : 0;
}

}  // namespace

NodeBoard::NodeBoard(const mpi::Communicator& node, const mpi::Communicator& all)
    : node_(node), spins_(spins_for(node)), memory_(node, all, sizeof(RankSlot), runtime::shared_name("board")) {
  slot(rank()).global_rank = all.rank();
  mpi::barrier(node);
}

bool NodeBoard::all_reached(Counter RankSlot::*counter, std::uint64_t number) const {
  for (int rank = 0; rank < size(); ++rank) {
    if ((slot(rank).*counter).value.load(std::memory_order_acquire) < number) return false;
  }
  return true;
}

void NodeBoard::wait_for(Counter RankSlot::*counter, std::uint64_t number,
                         const std::function<void()>& meanwhile) const {
  const auto check = [&] {
    throw_if_aborted();
    mpi::keep_going(node_);
    if (meanwhile) meanwhile();
  };
  wait_until([&] { return all_reached(counter, number); }, spins_, check);
}

std::uint64_t NodeBoard::post(const NodePost& post) {
  const auto number = ++posted_;
  // An entry is free again once all ranks are done with the collective that used it.
  if (number > kept) wait_for_done(number - kept);
  slot(rank()).posts[number % kept] = post;
  slot(rank()).arrived.value.store(number, std::memory_order_release);
  return number;
}

const NodePost& NodeBoard::post_of(int rank, std::uint64_t number) const { return slot(rank).posts[number % kept]; }

bool NodeBoard::all_arrived(std::uint64_t number) const { return all_reached(&RankSlot::arrived, number); }
void NodeBoard::wait_for_arrival(std::uint64_t number, const std::function<void()>& meanwhile) const {
  wait_for(&RankSlot::arrived, number, meanwhile);
}

void NodeBoard::mark_done(std::uint64_t number) { slot(rank()).done.value.store(number, std::memory_order_release); }
bool NodeBoard::all_done(std::uint64_t number) const { return all_reached(&RankSlot::done, number); }
void NodeBoard::wait_for_done(std::uint64_t number, const std::function<void()>& meanwhile) const {
  wait_for(&RankSlot::done, number, meanwhile);
}

void NodeBoard::meet() {
  const auto number = ++meetings_;
  slot(rank()).met.value.store(number, std::memory_order_release);
  wait_for(&RankSlot::met, number);
}

void NodeBoard::raise_abort(std::string_view reason) noexcept {
  auto& mine = slot(rank());
  if (mine.aborted.value.load(std::memory_order_relaxed) != 0) return;
  const auto length = std::min(reason.size(), mine.reason.size() - 1);
  std::copy_n(reason.begin(), length, mine.reason.begin());
  mine.reason[length] = '\0';
  mine.aborted.value.store(1, std::memory_order_release);
}

void NodeBoard::throw_if_aborted() const {
  for (int rank = 0; rank < size(); ++rank) {
    if (slot(rank).aborted.value.load(std::memory_order_acquire) == 0) continue;
    throw abandoned_by(slot(rank).global_rank, slot(rank).reason.data());
  }
}

}  // namespace hortator::comm
