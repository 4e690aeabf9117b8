// Signals are the process's: each case is a fork of its own.
#include "runtime/ending/stop_signal.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>

#include "support/catch.hpp"

using namespace hortator;

namespace {

bool is_true_in_fork(const std::function<bool()>& work) {
  const auto child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

volatile std::sig_atomic_t calls_of_the_program = 0;
void handler_of_the_program(int) { calls_of_the_program = calls_of_the_program + 1; }

bool hears_minutes_after(void (*before)(int)) {
  std::signal(SIGUSR1, before);
  runtime::survive_minutes_signal();
  std::raise(SIGUSR1);
  return runtime::minutes_signal_received();
}

bool hears_seconds_after(void (*before)(int)) {
  std::signal(SIGTERM, before);
  const runtime::StopSignals signals;
  runtime::survive_seconds_signal();
  std::raise(SIGTERM);
  return runtime::since_seconds_signal().has_value();
}

/// Loads a library that is named as a driver's, and takes signals over, also from Catch2.
void start_driver() {
  void* const library = dlopen(HORTATOR_TEST_DRIVER, RTLD_NOW);
  reinterpret_cast<void (*)()>(dlsym(library, "take_signals_over"))();
}

using Handler = void (*)(int);
Handler handler_of(int signal) {
  struct sigaction current {};
  sigaction(signal, nullptr, &current);
  return current.sa_handler;
}

/// Whether the three signals do this.
bool all_do(Handler handler) {
  return handler_of(SIGUSR1) == handler && handler_of(SIGTERM) == handler && handler_of(SIGINT) == handler;
}

/// Whether the three signals do what they did before, when the only holder of our handlers is gone.
bool are_put_back(Handler before) {
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) std::signal(signal, before);
  bool were_ours = false;
  {
    const runtime::StopSignals signals;
    runtime::survive_seconds_signal();
    were_ours = handler_of(SIGUSR1) != before && handler_of(SIGTERM) != before;
  }
  return were_ours && all_do(before);
}

}  // namespace

TEST_CASE("the scheduler's signals are recorded, also by a process that was started with them ignored") {
  CHECK(is_true_in_fork([] { return hears_minutes_after(SIG_DFL); }));
  CHECK(is_true_in_fork([] { return hears_minutes_after(SIG_IGN); }));
  CHECK(is_true_in_fork([] { return hears_seconds_after(SIG_DFL); }));
  CHECK(is_true_in_fork([] { return hears_seconds_after(SIG_IGN); }));
}

TEST_CASE("a handler of the program stays installed") {
  CHECK(is_true_in_fork([] { return !hears_minutes_after(handler_of_the_program) && calls_of_the_program == 1; }));
  CHECK(is_true_in_fork([] { return !hears_seconds_after(handler_of_the_program) && calls_of_the_program == 1; }));
}

TEST_CASE("handlers that a driver has installed, before us or after us, are replaced while a run listens") {
  CHECK(is_true_in_fork([] {
    start_driver();
    return hears_seconds_after(handler_of(SIGTERM)) && hears_minutes_after(handler_of(SIGUSR1));
  }));
  CHECK(is_true_in_fork([] {
    const runtime::StopSignals signals;
    start_driver();
    runtime::survive_seconds_signal();
    std::raise(SIGUSR1);
    std::raise(SIGTERM);
    return runtime::minutes_signal_received() && runtime::since_seconds_signal().has_value();
  }));
}

TEST_CASE("the last holder of the handlers puts back what the program had") {
  CHECK(is_true_in_fork([] { return are_put_back(SIG_DFL); }));
  CHECK(is_true_in_fork([] { return are_put_back(SIG_IGN); }));
}

TEST_CASE("handlers stay as long as one holder lives, and are installed again by the next one") {
  CHECK(is_true_in_fork([] {
    const auto outer = std::make_unique<runtime::StopSignals>();
    { const runtime::StopSignals inner; }
    return handler_of(SIGUSR1) != SIG_DFL;
  }));
  CHECK(is_true_in_fork([] {
    { const runtime::StopSignals first; }
    const runtime::StopSignals second;
    std::raise(SIGUSR1);
    return runtime::minutes_signal_received();
  }));
}

TEST_CASE("after a run that was asked to stop, a late SIGUSR1 does not end the process, and Ctrl-C does") {
  CHECK(is_true_in_fork([] {
    for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) std::signal(signal, SIG_DFL);
    {
      const runtime::StopSignals signals;
      runtime::survive_seconds_signal();
      std::raise(SIGUSR1);
    }
    std::raise(SIGUSR1);
    return handler_of(SIGINT) == SIG_DFL && handler_of(SIGTERM) == SIG_DFL;
  }));
}

TEST_CASE("a handler that the program installs during a run stays after it") {
  CHECK(is_true_in_fork([] {
    {
      const runtime::StopSignals signals;
      std::signal(SIGUSR1, handler_of_the_program);
    }
    return handler_of(SIGUSR1) == handler_of_the_program;
  }));
}

TEST_CASE("after Ctrl-C in a run, the program's own reaction is put back") {
  CHECK(is_true_in_fork([] {
    std::signal(SIGINT, SIG_DFL);
    {
      const runtime::StopSignals signals;
      runtime::survive_seconds_signal();
      std::raise(SIGINT);
      if (!runtime::minutes_signal_received()) return false;
    }
    return handler_of(SIGINT) == SIG_DFL;
  }));
}
