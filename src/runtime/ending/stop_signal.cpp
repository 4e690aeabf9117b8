#include "runtime/ending/stop_signal.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <mutex>
#include <string_view>

#include "core/log.hpp"
#include "runtime/identity/ending_file.hpp"
#include "runtime/identity/outcome.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::runtime {
namespace {

// The only objects that the signal handlers access.
std::atomic<bool> minutes_are_left = false;
std::atomic<bool> was_interrupted = false;
std::atomic<std::int64_t> seconds_signal_at = 0;  ///< milliseconds of the monotonic clock
std::atomic<bool> is_listening = false;           ///< a loop checks for SIGTERM
std::atomic<bool (*)()> seconds_observer = nullptr;
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<bool (*)()>::is_always_lock_free);

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

void remember_minutes(int) { minutes_are_left = true; }

void remember_seconds(int signal) {
  std::signal(signal, SIG_DFL);
  seconds_signal_at = now();  // also for a loop that begins to check before the process ends
  const auto observer = seconds_observer.load();
  const bool is_observed = observer != nullptr && observer();
  if (is_listening || is_observed) return;
  write_flight();
  raise(signal);
}

// Like SIGTERM, the next one ends the process.
void remember_interrupt(int signal) {
  minutes_are_left = true;
  was_interrupted = true;
  std::signal(signal, SIG_DFL);
}

bool is_ignored(int signal) {
  struct sigaction current {};
  return sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

/// Libraries that come with a device or MPI may take over all signals that end a process, as LLVM does, to clean up and
/// repeat the signal. The program did not ask for that (share/doc/gpu.md).
bool belongs_to_a_driver(void (*handler)(int)) {
  Dl_info facts{};
  if (dladdr(reinterpret_cast<const void*>(handler), &facts) == 0 || facts.dli_fname == nullptr) return false;
  const std::string_view path = facts.dli_fname;
  const auto name = path.substr(path.rfind('/') + 1);
  constexpr std::array<std::string_view, 12> drivers = {"libLLVM", "libamd",  "libc10",   "libcuda",
                                                        "libhsa",  "libmpi",  "libnv",    "libopen",
                                                        "libpmi",  "libsycl", "libtorch", "libze_"};
  return std::any_of(drivers.begin(), drivers.end(), [&](auto driver) { return name.starts_with(driver); });
}

/// Whether the program has installed a handler, which stays.
bool has_handler_but(int signal, void (*ours)(int)) {
  struct sigaction current {};
  if (sigaction(signal, nullptr, &current) != 0) return false;
  const auto handler = current.sa_handler;
  return handler != SIG_DFL && handler != SIG_IGN && handler != ours && !belongs_to_a_driver(handler);
}

/// What a signal did before it was recorded.
struct HandlerBefore {
  int signal = 0;
  void (*ours)(int) = nullptr;
  struct sigaction before {};
  bool is_replaced = false;
};

struct Handlers {
  std::mutex mutex;
  int holders = 0;
  std::array<HandlerBefore, 3> all = {HandlerBefore{.signal = SIGUSR1, .ours = remember_minutes},
                                      HandlerBefore{.signal = SIGTERM, .ours = remember_seconds},
                                      HandlerBefore{.signal = SIGINT, .ours = remember_interrupt}};
};

Handlers& handlers() {
  static Handlers instance;
  return instance;
}

/// Whether the first signal has come, after which our handler leaves the next one to the default action.
bool has_come(int signal) {
  return signal == SIGTERM ? seconds_signal_at != 0 : signal == SIGINT ? was_interrupted.load() : false;
}

// A script that ignores a signal (trap '' USR1) passes that on to all processes that it starts, which is not intended
// for the ranks.
void remember(int signal, void (*handler)(int)) {
  if (has_handler_but(signal, handler) || has_come(signal)) return;
  struct sigaction ours {};
  struct sigaction before {};
  ours.sa_handler = handler;
  ours.sa_flags = SA_RESTART;
  sigaction(signal, &ours, &before);
  const std::scoped_lock lock(handlers().mutex);
  for (auto& one : handlers().all) {
    if (one.signal != signal || one.is_replaced || before.sa_handler == handler) continue;
    one.before = before;
    one.is_replaced = true;
  }
}

// A handler that the program has installed since then stays.
void put_back(HandlerBefore& one) {
  if (!one.is_replaced) return;
  one.is_replaced = false;
  struct sigaction current {};
  if (sigaction(one.signal, nullptr, &current) != 0) return;
  const bool is_ours = current.sa_handler == one.ours || (current.sa_handler == SIG_DFL && has_come(one.signal));
  if (is_ours) sigaction(one.signal, &one.before, nullptr);
}

void report_other_handler(int signal, const char* name, void (*ours)(int)) {
  if (!has_handler_but(signal, ours)) return;
  log::info("The program has a handler of its own for ", name, ", which stays: should_stop() does not see ", name);
}

void begin_to_listen() {
  if (is_listening.exchange(true)) return;
  remember(SIGUSR1, remember_minutes);  // again: a driver that has started since then may have taken it over
  remember(SIGTERM, remember_seconds);
  if (!is_ignored(SIGINT)) remember(SIGINT, remember_interrupt);
  publish_that_it_stops();
  report_other_handler(SIGUSR1, "SIGUSR1", remember_minutes);
  report_other_handler(SIGTERM, "SIGTERM", remember_seconds);
  report_other_handler(SIGINT, "SIGINT", remember_interrupt);
}

}  // namespace

StopSignals::StopSignals() {
  {
    const std::scoped_lock lock(handlers().mutex);
    ++handlers().holders;
  }
  remember(SIGUSR1, remember_minutes);
}

StopSignals::~StopSignals() {
  const std::scoped_lock lock(handlers().mutex);
  if (--handlers().holders > 0) return;
  is_listening = false;
  // Where ranks were asked to stop, the signal may reach this one late, while it leaves.
  const bool was_asked = minutes_are_left || was_stopped();
  for (auto& one : handlers().all) {
    if (one.signal != SIGUSR1 || !was_asked) put_back(one);
  }
}

void survive_minutes_signal() { [[maybe_unused]] static const StopSignals* const forever = new StopSignals(); }

void survive_seconds_signal() { begin_to_listen(); }

void observe_seconds_signal(bool (*observer)()) {
  seconds_observer = observer;
  if (!is_ignored(SIGTERM)) remember(SIGTERM, remember_seconds);
}

void end_by_seconds_signal() {
  if (is_listening) return;
  write_flight();
  kill(getpid(), SIGTERM);
}

bool minutes_signal_received() { return minutes_are_left; }

std::optional<std::chrono::milliseconds> since_seconds_signal() {
  const auto at = seconds_signal_at.load();
  if (at == 0) return {};
  return std::chrono::milliseconds(now() - at);
}

}  // namespace hortator::runtime
