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

/// Waits for another rank of the node: spins for about as long as a message takes, then lets others run (there may be
/// more ranks than cores), in the end sleeps in short naps. `check` is called now and then and may throw.
template <typename Ready, typename Check>
void wait_until(const Ready& ready, int spins, const Check& check) {
  using namespace std::chrono_literals;
  for (int i = 0; i < spins; ++i) {
    if (ready()) return;
    pause_cpu();
  }
  for (int turns = 0; !ready(); ++turns) {
    check();
    if (turns < 2000) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(50us);
    }
  }
}

}  // namespace hortator::comm
