// Preloaded into tests, which run more ranks than cores. A rank that waits polls and calls sched_yield between polls:
// Open MPI with mpi_yield_when_idle, and the back end `node`. Here it sleeps after some yields without progress, so
// that the ranks it waits for, and other tests, get its core.
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr long yields_before_sleep = 100;
constexpr long pause_ns = 30'000;
constexpr long busy_ns = 200'000;  // between two yields: the thread has worked

long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int sched_yield() {
  static thread_local long yields = 0;
  static thread_local long last = 0;
  const long called = now();
  if (called - last > busy_ns) yields = 0;
  if (++yields <= yields_before_sleep) {
    syscall(SYS_sched_yield);
  } else {
    const timespec pause{0, pause_ns};
    nanosleep(&pause, nullptr);
  }
  last = now();
  return 0;
}
