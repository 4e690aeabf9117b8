#include "launch/waiting.hpp"

#include <algorithm>

namespace hortator::launching {

std::optional<std::string> thread_waiting(const LaunchRequest& request, const LaunchEnvironment& environment) {
  if (environment.has_wait_policy || has_nodes(request, environment)) return std::nullopt;
  const auto asked = request.threads ? request.threads : environment.asked_threads;
  const int threads = asked.value_or(std::max(1, environment.cpus / request.ranks));
  if (threads == 1) return std::nullopt;
  // Compared by division: the product may overflow.
  if (threads > environment.cpus / request.ranks) return "OMP_WAIT_POLICY=passive";
  return "GOMP_SPINCOUNT=10000";  // long enough for the gap between two operators
}

}  // namespace hortator::launching
