#include "runtime/stop_signal.hpp"

#include <csignal>

namespace hortator::runtime {
namespace {

// A signal comes to the process, and its handler may touch nothing else.
volatile std::sig_atomic_t received = 0;

void remember(int) { received = 1; }

}  // namespace

void survive_stop_signal() {
  struct sigaction current {};
  if (sigaction(SIGUSR1, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  struct sigaction ours {};
  ours.sa_handler = remember;
  ours.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &ours, nullptr);
}

bool stop_signal_received() { return received != 0; }

}  // namespace hortator::runtime
