#include "simulation/together/shared_counter.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "comm/shm/wait.hpp"

namespace hortator::simulation {
namespace {

std::uint32_t* word_of(std::atomic<std::uint32_t>& value) { return reinterpret_cast<std::uint32_t*>(&value); }

}  // namespace

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

// The value first: who has seen the old one and sleeps a moment later is refused by the kernel, which compares it
// again.
void SharedCounter::advance() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (waiting_.load(std::memory_order_seq_cst) > 0)
    syscall(SYS_futex, word_of(value_), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedCounter::wait_while(std::uint32_t seen, Time deadline, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (value() != seen) return;
    comm::pause_cpu();
  }
  const auto left = deadline - std::chrono::steady_clock::now();
  if (left.count() <= 0) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec longest = {
      .tv_sec = static_cast<time_t>(seconds.count()),
      .tv_nsec = static_cast<long>(std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds).count())};
  waiting_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, word_of(value_), FUTEX_WAIT, seen, &longest, nullptr, 0);
  waiting_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace hortator::simulation
