#include "tools/launch/restart_plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

constexpr double max_delay = 300;
constexpr double hour = 3600;

// Seconds before the first restart, and before the second without progress, which doubles from then on.
struct BackOff {
  double first = 0;
  double second = 1;
};

// A lost node is left out, so that nothing has to recover before the first restart.
BackOff back_off(std::string_view error_class) {
  constexpr std::array<std::string_view, 5> recovering = {"network", "storage", "device", "busy", "space"};
  if (error_class == "node") return {.first = 0, .second = 10};
  if (std::ranges::find(recovering, error_class) != recovering.end()) return {.first = 5, .second = 10};
  return {};
}

// Runs that end within a second write no status: then checkpoints in memory show that there was progress.
bool has_got_no_further(const observe::RestartRecord& attempt, const observe::RestartRecord& before) {
  return attempt.step <= before.step && attempt.memory_checkpoint <= before.memory_checkpoint;
}

// How many attempts in a row, this one included, have ended no later than the one before.
int attempts_without_progress(const observe::RestartRecord& failed,
                              const std::vector<observe::RestartRecord>& earlier) {
  int count = 0;
  const auto* attempt = &failed;
  for (auto before = earlier.rbegin(); before != earlier.rend() && has_got_no_further(*attempt, *before);
       ++before, ++count)
    attempt = &*before;
  return count;
}

double delay_before_restart(const observe::RestartRecord& failed, const std::vector<observe::RestartRecord>& earlier) {
  const auto wait = back_off(failed.error_class);
  const int count = attempts_without_progress(failed, earlier);
  return count == 0 ? wait.first : std::min(max_delay, wait.second * std::exp2(count - 1));
}

long restarts_in_hour(const observe::RestartRecord& failed, const std::vector<observe::RestartRecord>& earlier) {
  return std::ranges::count_if(earlier, [&](const observe::RestartRecord& before) {
    return before.is_restarted && before.time + before.delay > failed.time - hour;
  });
}

}  // namespace

RestartPlan plan_restart(const observe::RestartRecord& failed, const std::vector<observe::RestartRecord>& earlier,
                         const RestartLimits& limits) {
  const auto made = std::ranges::count_if(earlier, &observe::RestartRecord::is_restarted);
  if (failed.was_signalled) return {.refused = "the job was ended from outside"};
  if (failed.decision == "stop") return {.refused = text::concat(failed.reason, " (rule ", failed.rule, ')')};
  if (failed.exit_code == usage_exit_code && failed.rank < 0) return {.refused = "exit code 2 is that of wrong usage"};
  if (made >= limits.in_total) {
    return {.refused = limits.in_total == 0 ? "no restart was asked for (--max-restarts)"
                                            : text::concat("it was restarted ", text::count(made, "time"), " already")};
  }
  if (limits.per_hour > 0 && restarts_in_hour(failed, earlier) >= limits.per_hour) {
    return {.refused = text::concat("it was restarted ", limits.per_hour,
                                    " times within an hour, the limit of "
                                    "--restarts-per-hour")};
  }
  return {.restarts = true, .delay = delay_before_restart(failed, earlier)};
}

}  // namespace hortator::tools
