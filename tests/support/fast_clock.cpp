// Preloaded: the program's steady clock runs FAST_CLOCK times as fast from its start, so that a time limit of the
// product takes a fraction of it. Sleeps and waits with a time limit are shortened alike. Other clocks, and waits
// within the kernel (poll, epoll), are unchanged.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

using Nanoseconds = std::int64_t;
constexpr Nanoseconds second = 1'000'000'000;

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

Nanoseconds nanoseconds(const timespec& time) { return time.tv_sec * second + time.tv_nsec; }

timespec to_timespec(Nanoseconds time) {
  return {.tv_sec = static_cast<time_t>(time / second), .tv_nsec = static_cast<long>(time % second)};
}

int read_clock(clockid_t clock, timespec* time) noexcept {
  static const auto next = real<int(clockid_t, timespec*)>("clock_gettime");
  return next(clock, time);
}

// The moment from which the clock is fast, and its speed.
struct Rate {
  Rate() {
    const char* text = std::getenv("FAST_CLOCK");
    if (text != nullptr && std::atoi(text) > 1) factor = std::atoi(text);
    timespec now = {};
    read_clock(CLOCK_MONOTONIC, &now);
    begin = nanoseconds(now);
  }
  Nanoseconds to_fast(Nanoseconds time) const { return begin + (time - begin) * factor; }
  Nanoseconds to_real(Nanoseconds time) const { return begin + (time - begin) / factor; }

  Nanoseconds begin = 0;
  Nanoseconds factor = 1;
};

const Rate& rate() {
  static const Rate rate;
  return rate;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int code = read_clock(clock, time);
  if (code == 0 && clock == CLOCK_MONOTONIC) *time = to_timespec(rate().to_fast(nanoseconds(*time)));
  return code;
}

int nanosleep(const timespec* time, timespec* left) {
  const auto shortened = to_timespec(nanoseconds(*time) / rate().factor);
  return real<int(const timespec*, timespec*)>("nanosleep")(&shortened, left);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  auto shortened = *time;
  if ((flags & TIMER_ABSTIME) == 0) {
    shortened = to_timespec(nanoseconds(*time) / rate().factor);
  } else if (clock == CLOCK_MONOTONIC) {
    shortened = to_timespec(rate().to_real(nanoseconds(*time)));
  }
  return real<int(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep")(clock, flags, &shortened, left);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* end) {
  const auto moved = clock == CLOCK_MONOTONIC ? to_timespec(rate().to_real(nanoseconds(*end))) : *end;
  return real<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait")(
      condition, mutex, clock, &moved);
}

}  // extern "C"
