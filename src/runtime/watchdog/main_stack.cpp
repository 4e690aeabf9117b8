#include "runtime/watchdog/main_stack.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "core/text/text.hpp"

namespace hortator::runtime {
namespace {

using namespace std::chrono_literals;

// The handler's own frame and the kernel's return from it.
constexpr int own_frames = 2;

// The only objects that the signal handler accesses.
std::array<void*, 64> addresses;
std::atomic<int> taken = -1;

void take(int) {
  const int before = errno;
  const int count = backtrace(addresses.data(), static_cast<int>(addresses.size()));
  taken.store(count, std::memory_order_release);
  errno = before;
}

unsigned long long blocked_in_main_thread() {
  constexpr std::string_view key = "SigBlk:\t";
  std::ifstream status(text::concat("/proc/self/task/", getpid(), "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 16);
  }
  return ~0ULL;
}

std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : symbol;
}

// Drops arguments and template parameters, which make very long lines; the function's name suffices.
std::string without_arguments(const std::string& name) {
  std::string plain;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    constexpr std::string_view anonymous = "(anonymous namespace)::";
    if (name.compare(i, anonymous.size(), anonymous) == 0) {
      i += anonymous.size() - 1;
      continue;
    }
    const char c = name[i];
    if (c == '(' || c == '<') ++depth;
    if (depth == 0) plain += c;
    if (c == ')' || c == '>') --depth;
  }
  // Operators and function types are shown unchanged.
  return depth == 0 && !plain.empty() && plain.find("operator") == std::string::npos ? plain : name;
}

std::string frame(void* address) {
  Dl_info info{};
  // A return address is the instruction after the call, which may belong to the next function.
  auto* call = static_cast<char*>(address) - 1;
  if (dladdr(call, &info) == 0 || info.dli_fname == nullptr) return text::concat(address);
  const auto offset = static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
  if (info.dli_sname != nullptr) return without_arguments(demangled(info.dli_sname));
  return text::concat(text::file_name(info.dli_fname), "+0x", std::hex, offset);
}

bool wait_for_answer(std::chrono::steady_clock::time_point end) {
  while (taken.load(std::memory_order_acquire) < 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace

void prepare_stacks() {
  std::array<void*, 1> none{};
  backtrace(none.data(), 1);
}

int free_signal(unsigned long long blocked) {
  for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
    struct sigaction current {};
    if (sigaction(signal, nullptr, &current) != 0) continue;
    const bool is_blocked = (blocked >> (signal - 1) & 1) != 0;
    if (current.sa_handler == SIG_DFL && (current.sa_flags & SA_SIGINFO) == 0 && !is_blocked) return signal;
  }
  return 0;
}

std::vector<std::string> stack_of_main_thread(std::chrono::milliseconds patience) {
  // The signal and the addresses exist once in the process: one caller at a time.
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  const auto end = std::chrono::steady_clock::now() + patience;
  int signal = 0;
  // A thread may block all signals for a moment, for example while it starts another one.
  while ((signal = free_signal(blocked_in_main_thread())) == 0) {
    if (std::chrono::steady_clock::now() > end) return {};
    std::this_thread::sleep_for(1ms);
  }
  struct sigaction ours {};
  struct sigaction before {};
  ours.sa_handler = take;
  ours.sa_flags = SA_RESTART;
  taken.store(-1, std::memory_order_relaxed);
  if (sigaction(signal, &ours, &before) != 0) return {};
  const bool sent = syscall(SYS_tgkill, getpid(), getpid(), signal) == 0;
  // A late signal needs the handler: without it the signal would end the process.
  if (sent && !wait_for_answer(end)) return {};
  sigaction(signal, &before, nullptr);
  std::vector<std::string> frames;
  for (int i = own_frames; sent && i < taken.load(std::memory_order_acquire); ++i) {
    frames.push_back(frame(addresses[static_cast<std::size_t>(i)]));
  }
  return frames;
}

}  // namespace hortator::runtime
