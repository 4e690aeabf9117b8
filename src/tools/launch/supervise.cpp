#include "tools/launch/supervise.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <hortator/error.hpp>

#include "core/record_json.hpp"
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

// From here on the child is the launcher; what it inherits has to be as if nobody watched.
[[noreturn]] void run_child(const std::vector<std::string>& words, const sigset_t& before, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  try {
    become(words);
  } catch (const std::exception& error) {
    const auto line = text::concat("hortator: ", error.what(), '\n');
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  }
  _exit(127);
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// A terminal sends Ctrl-C to the launcher, too.
bool is_for_us_alone(const siginfo_t& info) { return info.si_signo != SIGINT || info.si_code != SI_KERNEL; }

// What the launcher is to get in place of `signal`; an alarm brings the rest.
int softened(int signal, std::chrono::seconds& grace) {
  if (signal == SIGALRM) return SIGTERM;
  if (signal != SIGTERM || grace.count() == 0) return signal;
  alarm(static_cast<unsigned>(grace.count()));
  grace = {};
  return SIGUSR1;
}

// Where other threads run, the kernel may give them the news that the child has ended, which they ignore: it is asked
// for now and then as well.
int wait_for(pid_t child, const sigset_t& signals, std::chrono::seconds grace) {
  constexpr timespec now_and_then = {.tv_sec = 0, .tv_nsec = 200'000'000};
  while (true) {
    siginfo_t info{};
    const int signal = sigtimedwait(&signals, &info, &now_and_then);
    if (signal > 0 && signal != SIGCHLD && is_for_us_alone(info)) kill(child, softened(signal, grace));
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return code_of(status);
  }
}

// Nothing for a file that is not there, older, or no JSON.
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

int supervise(const std::vector<std::string>& words, std::chrono::seconds grace) {
  const auto signals = watched_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) throw Error({.what = text::concat("no process could be started: ", std::strerror(errno))});
  if (child == 0) run_child(words, before, self);
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
