// Signals are the process's: each case is a fork of its own.
#include "runtime/ending/stop_signal.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

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
  runtime::survive_seconds_signal();
  std::raise(SIGTERM);
  return runtime::since_seconds_signal().has_value();
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
