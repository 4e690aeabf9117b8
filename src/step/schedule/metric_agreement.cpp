#include "step/schedule/metric_agreement.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::step {
namespace {

// Sums in a different order may differ in their last digits.
constexpr double rounding = 1e-6;
constexpr std::size_t max_named = 4;

bool agree(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::abs(a - b) <= rounding * std::max(std::abs(a), std::abs(b)) && std::isfinite(a) && std::isfinite(b);
}

}  // namespace

double agreed_metric(std::span<const double> by_rank) {
  std::vector<std::string> others;
  int first = 0;
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    if (agree(by_rank[rank], by_rank[0])) continue;
    if (others.empty()) first = static_cast<int>(rank);
    others.push_back(text::concat(by_rank[rank], " on rank ", rank));
  }
  if (others.empty()) return by_rank[0];
  const auto differing = others.size();
  others.resize(std::min(differing, max_named));
  if (differing > max_named) others.emplace_back("...");
  throw UsageError({.what = text::concat("The metric is ", by_rank[0], " on rank 0, but ", text::join(others)),
                    .why = "the ranks would continue with different learning rates",
                    .hint = "reduce it to one number first: gather_for_metrics(), or reduce(metric, Reduce::mean)"})
      .on_rank(first);
}

double agree_on_metric(const mpi::Communicator& host, double metric) {
  return agreed_metric(mpi::all_gather(host, metric));
}

}  // namespace hortator::step
