#include "runtime/ending/last_signal.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <new>

#include "support/catch.hpp"

using namespace hortator;

namespace {

struct Shared {
  std::atomic<int> noted = 0;
  std::atomic<int> passed_on = 0;
};

// Memory that a child shares.
Shared& shared() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  return *new (memory) Shared;
}

// The signal that has ended a child in which `work` ran; 0: none.
template <typename Work>
int end_of_child(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

Shared* child_memory = nullptr;

}  // namespace

TEST_CASE("a crash is noted, and the process still ends by its signal") {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    auto& memory = shared();
    const auto end = end_of_child([&] {
      for (const int each : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(each, SIG_DFL);
      runtime::add_last_signal(memory.noted);
      if (signal == SIGABRT) std::abort();
      raise(signal);
    });
    CHECK(end == signal);
    CHECK(memory.noted == signal);
  }
}

TEST_CASE("the handler that was there before a crash is called as well") {
  auto& memory = shared();
  child_memory = &memory;
  const auto end = end_of_child([&] {
    std::signal(SIGSEGV, [](int signal) {
      child_memory->passed_on = signal;
      _exit(0);
    });
    runtime::add_last_signal(memory.noted);
    raise(SIGSEGV);
  });
  CHECK(end == 0);
  CHECK(memory.noted == SIGSEGV);
  CHECK(memory.passed_on == SIGSEGV);
}

TEST_CASE("a note goes to all places that were not removed") {
  auto& memory = shared();
  end_of_child([&] {
    runtime::add_last_signal(memory.noted);
    runtime::add_last_signal(memory.passed_on);
    runtime::remove_last_signal(memory.passed_on);
    runtime::note_last_signal(SIGTERM);
  });
  CHECK(memory.noted == SIGTERM);
  CHECK(memory.passed_on == 0);
}

TEST_CASE("a place for which there is no room never looks like a rank without a word") {
  auto& memory = shared();
  end_of_child([&] {
    std::array<std::atomic<int>, 100> places{};
    for (auto& each : places) runtime::add_last_signal(each);
    runtime::add_last_signal(memory.noted);
  });
  CHECK(memory.noted == runtime::has_reported);
}
