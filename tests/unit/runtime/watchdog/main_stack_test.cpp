#include "runtime/watchdog/main_stack.hpp"

#include <algorithm>
#include <csignal>
#include <future>
#include <thread>

#include "support/catch.hpp"

using namespace hortator;
using namespace std::chrono_literals;

namespace {

std::vector<struct sigaction> real_time_actions() {
  std::vector<struct sigaction> actions;
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigaction(signal, nullptr, &actions.emplace_back());
  return actions;
}

unsigned long long bit(int signal) { return 1ULL << (signal - 1); }

std::vector<std::string> stack_seen_from_elsewhere(std::chrono::milliseconds patience) {
  auto stack = std::async(std::launch::async, [&] { return runtime::stack_of_main_thread(patience); });
  while (stack.wait_for(1ms) != std::future_status::ready) std::this_thread::sleep_for(1ms);
  return stack.get();
}

}  // namespace

TEST_CASE("the main thread's calls are seen from another thread, and no handler stays") {
  runtime::prepare_stacks();
  const auto before = real_time_actions();
  for (int i = 0; i < 3; ++i) {
    const auto stack = stack_seen_from_elsewhere(5s);
    CHECK(stack.size() > 3);
    CHECK(std::ranges::any_of(stack, [](const auto& frame) { return frame.find("__libc_start") != frame.npos; }));
  }
  const auto after = real_time_actions();
  CHECK(std::ranges::equal(before, after, [](const auto& a, const auto& b) { return a.sa_handler == b.sa_handler; }));
}

TEST_CASE("a signal that is in use is never taken") {
  const int highest = runtime::free_signal(0);
  CHECK(highest <= SIGRTMAX);
  CHECK(runtime::free_signal(bit(highest)) == highest - 1);  // blocked: a thread may wait for it
  auto* before = std::signal(highest, [](int) {});
  CHECK(runtime::free_signal(0) == highest - 1);
  std::signal(highest, SIG_IGN);
  CHECK(runtime::free_signal(0) == highest - 1);
  std::signal(highest, before);
  CHECK(runtime::free_signal(~0ULL) == 0);
}

TEST_CASE("a main thread that blocks every signal is left alone") {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  CHECK(stack_seen_from_elsewhere(100ms).empty());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}
