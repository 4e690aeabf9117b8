// Takes signals over as the compiler in a driver of devices does: it cleans up, and repeats the signal.
#include <csignal>
#include <initializer_list>

namespace {

void clean_up(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

extern "C" void take_signals_over() {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) std::signal(signal, clean_up);
}
