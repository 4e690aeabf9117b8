#include "tools/launch/supervise.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <hortator/error.hpp>
#include <iostream>
#include <optional>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "tools/launch/relay.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

bool is_ignored(int signal) {
  struct sigaction current {};
  return sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

sigset_t watched_signals() {
  auto set = stopping_signals();
  for (const int signal : {SIGALRM, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

// The launcher's signal mask: that of this process before, without SIGINT where the launcher is kept from it. It gets
// the other signals also while this process holds them back (HeldSignals). Launchers unblock all signals for the ranks,
// which a terminal's SIGINT does not reach: they are in process groups of their own.
sigset_t launcher_mask(sigset_t before, const Supervision& supervision) {
  for (const int signal : {SIGUSR1, SIGTERM, SIGHUP, SIGINT}) sigdelset(&before, signal);
  if (supervision.stops_when_asked) sigaddset(&before, SIGINT);
  return before;
}

// Becomes the launcher.
[[noreturn]] void run_child(const std::vector<std::string>& command, const sigset_t& mask, int error, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  dup2(error, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  replace_child(command);
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// A terminal sends the SIGINT of Ctrl-C to the launcher as well.
bool is_sent_to_us_only(const siginfo_t& info) { return info.si_signo != SIGINT || info.si_code != SI_KERNEL; }

using Clock = std::chrono::steady_clock;
// How long a SIGUSR1 is held for a program that does not report that it has begun: it may not be one of Hortator's.
constexpr std::chrono::seconds max_hold(30);
constexpr std::chrono::seconds time_between_looks(5);
constexpr std::chrono::seconds max_time_to_end(60);  // of a launcher whose ranks have failed

// Forwards signals to the launcher `child` and waits for its end.
class Wait {
 public:
  Wait(pid_t child, Supervision supervision) : child_(child), supervision_(std::move(supervision)) {}

  // The kernel may deliver SIGCHLD to another thread, which ignores it, so that the child is polled as well.
  LauncherEnd until_end(const sigset_t& signals) {
    constexpr timespec poll_interval = {.tv_sec = 0, .tv_nsec = 200'000'000};
    while (true) {
      siginfo_t info{};
      const int signal = sigtimedwait(&signals, &info, &poll_interval);
      if (signal > 0 && signal != SIGCHLD) take(signal, info);
      forward_held();
      if (supervision_.meanwhile) supervision_.meanwhile();
      end_stuck();
      int status = 0;
      if (waitpid(child_, &status, WNOHANG) != child_) continue;
      return {.code = code_after_signals(code_of(status)), .was_signalled = was_signalled_};
    }
  }

 private:
  void take(int signal, const siginfo_t& info) {
    was_signalled_ = was_signalled_ || signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
    if (signal == SIGINT && supervision_.stops_when_asked) {
      kill(child_, take_interrupt());
    } else if (signal == SIGUSR1 && !has_begun()) {
      held_until_ = held_until_.value_or(Clock::now() + max_hold);
    } else if (is_sent_to_us_only(info)) {
      kill(child_, signal_to_forward(signal));
    }
  }

  bool has_begun() const { return !supervision_.has_begun || supervision_.has_begun(); }

  void forward_held() {
    if (!held_until_ || (!has_begun() && Clock::now() < *held_until_)) return;
    held_until_.reset();
    kill(child_, SIGUSR1);
  }

  void end_stuck() {
    const auto now = Clock::now();
    if (!supervision_.has_failed || now < next_look_) return;
    next_look_ = now + time_between_looks;
    if (!failed_at_ && supervision_.has_failed()) failed_at_ = now;
    if (!failed_at_ || now - *failed_at_ < max_time_to_end) return;
    std::cerr << "hortator: the launcher does not end, a minute after the ranks have failed: it is killed" << std::endl;
    kill(child_, SIGKILL);
  }

  int code_after_signals(int code) const {
    if (code != 0 && interrupts_ > 0) return 128 + SIGINT;
    return code != 0 && ended_early_ ? 128 + SIGTERM : code;
  }

  int take_interrupt() {
    if (++interrupts_ > 1 || !supervision_.stops_when_asked()) return SIGTERM;
    std::cerr << "hortator: asked the run to save and stop after this step; press Ctrl-C again to end it at once"
              << std::endl;
    return SIGUSR1;
  }

  // SIGTERM follows by an alarm.
  int signal_to_forward(int signal) {
    if (signal == SIGALRM) return SIGTERM;
    if (signal != SIGTERM || supervision_.grace.count() == 0) return signal;
    if (!has_begun()) {
      std::cerr << "hortator: SIGTERM came before the program had begun, and ends it: there is nothing to save"
                << std::endl;
      ended_early_ = true;
      return signal;
    }
    alarm(static_cast<unsigned>(supervision_.grace.count()));
    supervision_.grace = {};
    return SIGUSR1;
  }

  pid_t child_;
  Supervision supervision_;
  int interrupts_ = 0;
  bool was_signalled_ = false;
  bool ended_early_ = false;  ///< by a SIGTERM before the program had begun
  Clock::time_point next_look_;
  std::optional<Clock::time_point> failed_at_;
  std::optional<Clock::time_point> held_until_;  ///< set while a SIGUSR1 waits for the program to begin
};

// Null if the file is missing, older, or not JSON.
nlohmann::json read_newer(const std::filesystem::path& file, std::filesystem::file_time_type since) {
  std::error_code failed;
  const auto time = std::filesystem::last_write_time(file, failed);
  if (failed || time < since) return {};
  return core::parse_record(core::read_at_most(file, core::max_record_bytes).value_or(""));
}

bool is_stopped(const nlohmann::json& outcome) {
  return outcome.is_object() && outcome.value("outcome", "") == "stopped";
}

int code_in(const nlohmann::json& record, int otherwise) {
  const bool has_code = record.is_object() && record.contains("exit_code") && record["exit_code"].is_number_integer();
  return has_code ? record["exit_code"].get<int>() : otherwise;
}

}  // namespace

sigset_t stopping_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGUSR1, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  if (!is_ignored(SIGINT)) sigaddset(&set, SIGINT);
  return set;
}

LauncherEnd supervise(const std::vector<std::string>& command, Supervision supervision) {
  std::optional<Relay> relay;
  if (supervision.output != nullptr) relay.emplace(*supervision.output);
  const auto signals = watched_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) throw Error({.what = text::concat("Cannot start a process: ", std::strerror(errno))});
  if (child == 0) run_child(command, launcher_mask(before, supervision), relay ? relay->inlet() : STDERR_FILENO, self);
  if (relay) relay->start();
  const auto end = Wait(child, std::move(supervision)).until_end(signals);
  alarm(0);
  if (relay) relay->finish();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return end;
}

bool has_failure(const std::filesystem::path& folder, std::filesystem::file_time_type since) {
  return read_newer(folder / "failure.json", since).is_object();
}

bool has_record(const std::filesystem::path& folder, std::filesystem::file_time_type since) {
  return is_stopped(read_newer(folder / "outcome.json", since)) || has_failure(folder, since);
}

int recorded_code(const std::filesystem::path& folder, std::filesystem::file_time_type since, int code) {
  if (code == 0) return 0;
  const auto outcome = read_newer(folder / "outcome.json", since);
  if (is_stopped(outcome)) return code_in(outcome, 75);
  return code_in(read_newer(folder / "failure.json", since), code);
}

}  // namespace hortator::tools
