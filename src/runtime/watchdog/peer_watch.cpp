#include "runtime/watchdog/peer_watch.hpp"

#include <semaphore.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/environment/environment.hpp"
#include "core/thread.hpp"
#include "runtime/ending/last_signal.hpp"
#include "runtime/ending/stop_signal.hpp"
#include "runtime/watchdog/living.hpp"

namespace hortator::runtime {
namespace {

sem_t seconds_signal;
pid_t watched_process = 0;

// In the signal handler. A forked child has no such thread.
bool wake_watch() {
  if (getpid() != watched_process) return false;
  note_last_signal(SIGTERM);
  return sem_post(&seconds_signal) == 0;
}

void watch() {
  while (sem_wait(&seconds_signal) != 0 && errno == EINTR) {
  }
  report_killed_peers(core::variable("HORTATOR_RUN_NOTE").has_value());
  end_by_seconds_signal();
}

void start() {
  if (sem_init(&seconds_signal, 0, 0) != 0) return;
  watched_process = getpid();
  core::start_without_signals("hortator-peers", watch).detach();
}

}  // namespace

// The handler is put back when a run has ended, and installed again for the next one.
void watch_for_killed_peers() {
  [[maybe_unused]] static const bool once = (start(), true);
  if (watched_process == getpid()) observe_seconds_signal(wake_watch);
}

}  // namespace hortator::runtime
