#include "tools/launch/supervise.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <hortator/error.hpp>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGUSR1, SIGTERM, SIGHUP, SIGINT, SIGALRM, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

// Becomes the launcher, with the signal mask that this process had.
[[noreturn]] void run_child(const std::vector<std::string>& command, const sigset_t& before, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  try {
    replace_process(command);
  } catch (const std::exception& error) {
    const auto line = text::concat("hortator: ", error.what(), '\n');
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  }
  _exit(127);
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// A terminal sends the SIGINT of Ctrl-C to the launcher as well.
bool is_sent_to_us_only(const siginfo_t& info) { return info.si_signo != SIGINT || info.si_code != SI_KERNEL; }

// The signal to forward instead of `signal`; SIGTERM follows by an alarm.
int signal_to_forward(int signal, std::chrono::seconds& grace) {
  if (signal == SIGALRM) return SIGTERM;
  if (signal != SIGTERM || grace.count() == 0) return signal;
  alarm(static_cast<unsigned>(grace.count()));
  grace = {};
  return SIGUSR1;
}

// The kernel may deliver SIGCHLD to another thread, which ignores it, so that the child is polled as well.
int wait_for(pid_t child, const sigset_t& signals, std::chrono::seconds grace) {
  constexpr timespec poll_interval = {.tv_sec = 0, .tv_nsec = 200'000'000};
  while (true) {
    siginfo_t info{};
    const int signal = sigtimedwait(&signals, &info, &poll_interval);
    if (signal > 0 && signal != SIGCHLD && is_sent_to_us_only(info)) kill(child, signal_to_forward(signal, grace));
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return code_of(status);
  }
}

// Null if the file is missing, older, or not JSON.
nlohmann::json read_newer(const std::filesystem::path& file, std::filesystem::file_time_type since) {
  std::error_code failed;
  const auto time = std::filesystem::last_write_time(file, failed);
  if (failed || time < since) return {};
  return core::parse_record(core::read_at_most(file, core::max_record_bytes).value_or(""));
}

int code_in(const nlohmann::json& record, int otherwise) {
  const bool has_code = record.is_object() && record.contains("exit_code") && record["exit_code"].is_number_integer();
  return has_code ? record["exit_code"].get<int>() : otherwise;
}

}  // namespace

int supervise(const std::vector<std::string>& command, std::chrono::seconds grace) {
  const auto signals = watched_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) throw Error({.what = text::concat("Cannot start a process: ", std::strerror(errno))});
  if (child == 0) run_child(command, before, self);
  const int code = wait_for(child, signals, grace);
  alarm(0);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return code;
}

int recorded_code(const std::filesystem::path& folder, std::filesystem::file_time_type since, int code) {
  if (code == 0) return 0;
  const auto outcome = read_newer(folder / "outcome.json", since);
  if (outcome.is_object() && outcome.value("outcome", "") == "stopped") return code_in(outcome, 75);
  return code_in(read_newer(folder / "failure.json", since), code);
}

}  // namespace hortator::tools
