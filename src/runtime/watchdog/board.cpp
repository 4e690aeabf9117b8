#include "runtime/watchdog/board.hpp"

#include <atomic>
#include <utility>

#include "mpi/communicator.hpp"
#include "runtime/identity/shared_name.hpp"
#include "runtime/watchdog/process.hpp"
#include "runtime/watchdog/status_page.hpp"

namespace hortator::runtime {
namespace {

constexpr std::size_t text_bytes = 16000;

}  // namespace

struct Board::Page {
  StatusPage<std::atomic<std::uint64_t>, text_bytes> status;
  std::atomic<std::uint64_t> beats;
  std::atomic<std::uint64_t> questions;
  std::atomic<int> last_signal;
};

Board::Board(const mpi::Communicator& node) : size_(node.size()), own_(node.rank()) {
  try {
    memory_.emplace(node, node, sizeof(Page), shared_name("watchdog"));
  } catch (const mpi::MpiError& error) {
    // All ranks of the node come here. The run continues: it does not need the watchdog.
    blindness_ = error.what();
    alone_ = std::make_shared<Page>();
  }
  taken_ = count_questions();
}

Board::Page* Board::page(int local_rank) const {
  // The memory is zeroed, and atomics of 8 bytes are plain memory.
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  if (memory_) return reinterpret_cast<Page*>(memory_->part(local_rank));
  return local_rank == own_ ? alone_.get() : nullptr;
}

void Board::publish(const RankRecord& slot) {
  auto& own = *page(own_);
  own.status.write(to_json_within(slot, text_bytes));
  own.beats.fetch_add(1, std::memory_order_release);
}

std::uint64_t Board::beats(int local_rank) const {
  const auto* there = page(local_rank);
  return there != nullptr ? there->beats.load(std::memory_order_acquire) : 0;
}

std::atomic<int>& Board::own_last_signal() const { return page(own_)->last_signal; }

int Board::last_signal(int local_rank) const {
  const auto* there = page(local_rank);
  return there != nullptr ? there->last_signal.load() : 0;
}

void Board::ask() {
  page(own_)->questions.fetch_add(1, std::memory_order_release);
  taken_ = count_questions();
}

bool Board::take_question() {
  const auto all = count_questions();
  return std::exchange(taken_, all) != all;
}

std::uint64_t Board::count_questions() const {
  std::uint64_t all = 0;
  for (int rank = 0; rank < size_; ++rank) {
    if (const auto* other = page(rank)) all += other->questions.load(std::memory_order_acquire);
  }
  return all;
}

std::optional<RankRecord> Board::read(int local_rank) const {
  const auto* there = page(local_rank);
  return there != nullptr ? slot_from_json(there->status.read()) : std::nullopt;
}

std::vector<RankRecord> Board::read() const {
  std::vector<RankRecord> slots;
  for (int rank = 0; rank < size_; ++rank) {
    auto slot = read(rank);
    if (!slot) continue;
    if (slot->life != RankLife::left) slot->life = life_of(slot->pid, slot->start);
    slots.push_back(std::move(*slot));
  }
  return slots;
}

}  // namespace hortator::runtime
