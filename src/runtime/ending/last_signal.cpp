#include "runtime/ending/last_signal.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>

#include "runtime/identity/ending_file.hpp"

namespace hortator::runtime {
namespace {

using Place = std::atomic<std::atomic<int>*>;

constexpr std::array crashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// A program seldom has more than one world. The objects that the signal handlers access.
std::array<Place, 16> places;
std::array<struct sigaction, crashes.size()> before;
static_assert(Place::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void replace(const std::atomic<int>* old, std::atomic<int>* place) {
  const auto found = std::ranges::find_if(places, [&](const Place& each) { return each.load() == old; });
  if (found != places.end()) {
    found->store(place);
  } else if (place != nullptr) {
    place->store(has_reported);  // no room for the signal; the end of this process must not look like SIGKILL
  }
}

// As the signal would have been handled without this code.
void pass_on(int signal, siginfo_t* info, void* context) {
  const auto& old = before[static_cast<std::size_t>(std::ranges::find(crashes, signal) - crashes.begin())];
  if ((old.sa_flags & SA_SIGINFO) != 0) return old.sa_sigaction(signal, info, context);
  // The kernel lets no process ignore its own fault: the instruction would run again for ever.
  if (old.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
  std::signal(signal, SIG_DFL);
  raise(signal);  // delivered when the handler returns
}

void handle(int signal, siginfo_t* info, void* context) {
  note_last_signal(signal);
  write_signal_ending(signal);
  pass_on(signal, info, context);
}

// After a stack overflow the handler needs another stack. This sets that of this thread only.
void provide_stack() {
  static std::array<std::byte, std::size_t{256} * 1024> memory;
  stack_t present{};
  if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
  const stack_t ours{.ss_sp = memory.data(), .ss_flags = 0, .ss_size = memory.size()};
  sigaltstack(&ours, nullptr);
}

void install() {
  provide_stack();
  for (std::size_t i = 0; i < crashes.size(); ++i) {
    struct sigaction ours {};
    ours.sa_sigaction = handle;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(crashes[i], nullptr, &before[i]);
    sigaction(crashes[i], &ours, nullptr);
  }
}

}  // namespace

void record_crashes() { [[maybe_unused]] static const bool once = (install(), true); }

void add_last_signal(std::atomic<int>& place) {
  record_crashes();
  replace(nullptr, &place);
}

void remove_last_signal(std::atomic<int>& place) { replace(&place, nullptr); }

void note_last_signal(int signal) {
  for (auto& each : places) {
    if (auto* const place = each.load()) place->store(signal);
  }
}

}  // namespace hortator::runtime
