#include "runtime/ending/stop_signal.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>

#include "core/log.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::runtime {
namespace {

// The only objects that the signal handlers access.
std::atomic<bool> minutes_are_left = false;
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
  if (!is_listening && !is_observed) raise(signal);
}

// Like SIGTERM, the next one ends the process.
void remember_interrupt(int signal) {
  minutes_are_left = true;
  std::signal(signal, SIG_DFL);
}

bool is_ignored(int signal) {
  struct sigaction current {};
  return sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

bool has_handler_but(int signal, void (*ours)(int)) {
  struct sigaction current {};
  if (sigaction(signal, nullptr, &current) != 0) return false;
  return current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN && current.sa_handler != ours;
}

// A script that ignores a signal (trap '' USR1) passes that on to all processes that it starts, which is not intended
// for the ranks.
void remember(int signal, void (*handler)(int)) {
  if (has_handler_but(signal, handler)) return;
  struct sigaction ours {};
  ours.sa_handler = handler;
  ours.sa_flags = SA_RESTART;
  sigaction(signal, &ours, nullptr);
}

void report_other_handler(int signal, const char* name, void (*ours)(int)) {
  if (!has_handler_but(signal, ours)) return;
  log::info("The program has a handler of its own for ", name, ", which stays: should_stop() does not see ", name);
}

void begin_to_listen() {
  is_listening = true;
  remember(SIGTERM, remember_seconds);
  if (!is_ignored(SIGINT)) remember(SIGINT, remember_interrupt);
  publish_that_it_stops();
  report_other_handler(SIGUSR1, "SIGUSR1", remember_minutes);
  report_other_handler(SIGTERM, "SIGTERM", remember_seconds);
  report_other_handler(SIGINT, "SIGINT", remember_interrupt);
}

}  // namespace

void survive_minutes_signal() { remember(SIGUSR1, remember_minutes); }

void survive_seconds_signal() { [[maybe_unused]] static const bool once = (begin_to_listen(), true); }

void observe_seconds_signal(bool (*observer)()) {
  seconds_observer = observer;
  if (!is_ignored(SIGTERM)) remember(SIGTERM, remember_seconds);
}

void end_by_seconds_signal() {
  if (!is_listening) kill(getpid(), SIGTERM);
}

bool minutes_signal_received() { return minutes_are_left; }

std::optional<std::chrono::milliseconds> since_seconds_signal() {
  const auto at = seconds_signal_at.load();
  if (at == 0) return {};
  return std::chrono::milliseconds(now() - at);
}

}  // namespace hortator::runtime
