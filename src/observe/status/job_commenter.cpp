#include "observe/status/job_commenter.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <hortator/error.hpp>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/thread.hpp"

namespace hortator::observe {
namespace {

constexpr auto first_comment_after = std::chrono::seconds(20);
constexpr auto max_time_of_command = std::chrono::seconds(5);

// Whether it has ended with 0 in time. Without a shell, and without its output.
bool succeeds(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  pid_t child = 0;
  const bool is_started = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  if (!is_started) return false;
  const auto end = JobCommenter::Clock::now() + max_time_of_command;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (JobCommenter::Clock::now() > end) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

JobCommenter::JobCommenter(std::string job, std::chrono::duration<double> period)
    : job_(std::move(job)),
      period_(period),
      next_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                               std::min(period, std::chrono::duration<double>(first_comment_after)))) {}

JobCommenter::~JobCommenter() { join(); }

void JobCommenter::join() {
  if (thread_.joinable()) thread_.join();
}

std::optional<double> JobCommenter::samples_per_second(const RankStatus& main) {
  const auto samples = main.samples - std::exchange(samples_, main.samples);
  const double seconds = main.time - std::exchange(samples_at_, main.time);
  const bool is_known = samples > 0 && seconds > 0 && seconds < main.time;
  return is_known ? std::optional(static_cast<double>(samples) / seconds) : std::nullopt;
}

void JobCommenter::run(const std::vector<std::string>& command) {
  is_running_ = true;
  thread_ = core::start_without_signals("hortator-job", [this, command] {
    has_failed_ = !succeeds(command);
    is_running_ = false;
  });
}

void JobCommenter::report(const RankStatus& main) {
  const bool is_end = main.is_over && has_reported_;
  if (job_.empty() || period_.count() <= 0 || (Clock::now() < next_ && !is_end)) return;
  next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(period_);
  if (is_running_ && !is_end) return;
  join();
  if (has_failed_) {
    if (!std::exchange(is_refusal_logged_, true))
      log::info(
          "the scheduler does not let this job set its comment: no more tries (HORTATOR_COMMENT_SECONDS=0 avoids this "
          "one)");
    return;
  }
  const auto command = comment_command(job_, job_comment(main, samples_per_second(main)));
  if (command.empty()) return;
  has_reported_ = true;
  run(command);
}

std::chrono::duration<double> comment_period() {
  constexpr std::chrono::duration<double> usual(300);
  const auto asked = core::variable("HORTATOR_COMMENT_SECONDS");
  if (!asked) return usual;
  long long seconds = 0;
  if (!text::parse_integer(*asked, seconds) || seconds < 0) {
    throw UsageError({.what = "HORTATOR_COMMENT_SECONDS: expected a whole number from 0, got " + text::quote(*asked),
                      .hint = "0 leaves the job's comment alone"});
  }
  return std::chrono::seconds(seconds);
}

}  // namespace hortator::observe
