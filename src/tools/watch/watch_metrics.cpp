#include "tools/watch/watch_metrics.hpp"

#include "observe/status/metrics_text.hpp"

namespace hortator::tools {

std::string watch_metrics(const WatchFacts& facts, double now) {
  observe::MetricsFacts metrics{.run = facts.folder,
                                .state = state_of(facts, now),
                                .ranks = facts.ranks,
                                .restarts = facts.sessions.empty() ? 0 : static_cast<int>(facts.sessions.size()) - 1,
                                .failed_attempts = static_cast<int>(facts.attempts.size()),
                                .checkpoints = static_cast<int>(facts.checkpoints.size()),
                                .deadline = facts.deadline};
  if (!facts.checkpoints.empty()) metrics.checkpoint_at = facts.checkpoints.front().at;
  return observe::metrics_text(metrics, now);
}

}  // namespace hortator::tools
