#pragma once

#include <sched.h>

#include <chrono>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hortator::comm {

inline void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until `ready()` is true, which another rank of the node brings about. It polls `spins` times, then yields the
/// core between polls (there may be more ranks than cores), and after a while sleeps between them. Calls `check`
/// repeatedly after the first phase; it may throw.
template <typename Ready, typename Check>
void wait_until(const Ready& ready, int spins, const Check& check) {
  using namespace std::chrono_literals;
  for (int i = 0; i < spins; ++i) {
    if (ready()) return;
    pause_cpu();
  }
  for (int polls = 0; !ready(); ++polls) {
    check();
    if (polls < 2000) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(50us);
    }
  }
}

}  // namespace hortator::comm
