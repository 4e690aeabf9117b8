// opened_files PROGRAM [ARGUMENT...]: runs it, then prints how many files it and its threads have opened, including
// those of the dynamic loader. Files in /proc and /sys are not counted, because they need no access to a file system;
// child processes are not followed.
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace {

void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::string text_at(pid_t thread, std::uint64_t address) {
  std::array<char, 8> begin{};
  iovec here = {begin.data(), begin.size() - 1};
  iovec there = {reinterpret_cast<void*>(address), begin.size() - 1};
  process_vm_readv(thread, &here, 1, &there, 1, 0);
  return begin.data();
}

bool is_on_disk(const std::string& path) { return !path.starts_with("/proc/") && !path.starts_with("/sys/"); }

/// Tracks entry and exit of system calls for each thread.
class Calls {
 public:
  /// Whether the thread has just opened a file.
  bool has_opened(pid_t thread) {
    __ptrace_syscall_info info{};
    ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
      opening_[thread] = info.entry.nr == SYS_openat && is_on_disk(text_at(thread, info.entry.args[1]));
    return info.op == PTRACE_SYSCALL_INFO_EXIT && opening_[thread] && info.exit.rval >= 0;
  }

 private:
  std::map<pid_t, bool> opening_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    execv(argv[1], argv + 1);
    die(argv[1]);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
  ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  Calls calls;
  int opened = 0;
  while (true) {
    const pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0) die("waitpid");
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread != child) continue;
      std::printf("%d\n", opened);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    constexpr int call = SIGTRAP | 0x80;
    const int signal = WSTOPSIG(status);
    if (signal == call && calls.has_opened(thread)) ++opened;
    const bool is_ours = signal == call || signal == SIGTRAP || signal == SIGSTOP;
    ptrace(PTRACE_SYSCALL, thread, nullptr, is_ours ? 0 : signal);
  }
}
