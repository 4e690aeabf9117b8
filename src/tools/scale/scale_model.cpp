#include "tools/scale/scale_model.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "planning/cost.hpp"

namespace hortator::tools {
namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

Network network_of(int ranks, const std::vector<Timing>& timings) {
  // Least squares of (a + b bytes - t) / t.
  double one = 0;
  double x = 0;
  double xx = 0;
  double y = 0;
  double xy = 0;
  for (const auto& timing : timings) {
    if (!(timing.seconds > 0)) continue;
    const double weight = 1 / (timing.seconds * timing.seconds);
    one += weight;
    x += weight * timing.bytes;
    xx += weight * timing.bytes * timing.bytes;
    y += weight * timing.seconds;
    xy += weight * timing.bytes * timing.seconds;
  }
  const double determinant = one * xx - x * x;
  if (!(determinant > 1e-9 * one * xx)) {
    throw Error({.what = text::concat("Latency and bandwidth cannot be fitted to ",
                                      text::count(static_cast<long long>(timings.size()), "timing"), " of collectives"),
                 .hint = "measure at least two sizes"});
  }
  return {.ranks = ranks,
          .latency = std::max((y * xx - x * xy) / determinant, 0.0),
          .seconds_per_byte = std::max((one * xy - x * y) / determinant, 0.0)};
}

std::vector<ScaleSize> sizes_of(const ScalePlan& plan, const std::vector<ScalePoint>& points) {
  std::vector<ScaleSize> sizes;
  for (const int ranks : plan.ranks) {
    std::vector<double> seconds;
    std::vector<double> joules;
    ScaleSize size{.ranks = ranks};
    for (const auto& point : points) {
      if (point.run.ranks != ranks) continue;
      const auto& measure = point.measure;
      size.updates = plan.growth == Growth::strong ? static_cast<double>(measure.updates) : 1;
      size.nodes = measure.nodes;
      size.core_hours += measure.seconds * ranks * measure.cpus / 3600;
      if (!measure.device.empty()) size.gpu_hours += measure.seconds * ranks / 3600;
      size.flops = measure.flops_per_update;
      if (measure.joules > 0 && measure.updates > 0) {
        joules.push_back(measure.joules / static_cast<double>(measure.updates) * size.updates);
      }
      seconds.push_back(measure.seconds_per_update * size.updates);
    }
    if (seconds.empty()) continue;
    if (joules.size() == seconds.size()) size.joules = median(joules);
    size.seconds = median(seconds);
    size.min_seconds = *std::ranges::min_element(seconds);
    size.max_seconds = *std::ranges::max_element(seconds);
    sizes.push_back(size);
  }
  return sizes;
}

ScaleModel::ScaleModel(const Setting& setting, const std::vector<ScaleSize>& sizes)
    : setting_(setting), smallest_(sizes.front()) {
  const auto fewer = [&](const ScaleSize& size) { return size.updates != smallest_.updates; };
  updates_shrink_ = std::ranges::any_of(sizes, fewer);

  // Fits the fraction of communication that is not hidden: seconds = compute + fraction * communication.
  double along = 0;
  double square = 0;
  for (const auto& size : sizes) {
    if (size.ranks == smallest_.ranks) continue;
    const double factor = compute_factor(size.ranks);
    const double beyond_compute = (size.seconds - smallest_.seconds * factor) / size.seconds;
    const double shown = (communication(size.ranks) - communication(smallest_.ranks) * factor) / size.seconds;
    along += beyond_compute * shown;
    square += shown * shown;
  }
  overlap_ = 1 - (square > 0 ? std::clamp(along / square, 0.0, 1.0) : 1.0);
}

// Ranks that share cores slow each other down in proportion.
double ScaleModel::compute_factor(int ranks) const {
  const auto crowding = [&](int count) {
    const double wanted = std::min(count, setting_.ranks_per_node.value_or(count)) * setting_.cores_per_rank;
    return std::max(1.0, wanted / setting_.cores_per_node);
  };
  const double share = setting_.growth == Growth::strong ? static_cast<double>(smallest_.ranks) / ranks : 1;
  return share * crowding(ranks) / crowding(smallest_.ranks);
}

double ScaleModel::updates(int ranks) const {
  return updates_shrink_ ? smallest_.updates * smallest_.ranks / ranks : smallest_.updates;
}

double ScaleModel::communication(int ranks) const {
  if (ranks < 2) return 0;
  const auto& network = setting_.network;
  const int measured = std::max(network.ranks, 2);
  const double rounds = std::log2(ranks) / std::log2(measured);
  const double bytes = setting_.gradient_bytes * planning::ring_share(ranks) / planning::ring_share(measured);
  return updates(ranks) * planning::seconds({1 / network.seconds_per_byte, network.latency}, bytes, rounds);
}

double ScaleModel::seconds(int ranks) const {
  const double shown = 1 - overlap_;
  const double compute = smallest_.seconds - shown * communication(smallest_.ranks);
  return compute * compute_factor(ranks) + shown * communication(ranks);
}

std::optional<double> left_out(const ScaleModel::Setting& setting, const std::vector<ScaleSize>& sizes,
                               std::size_t index) {
  if (index == 0 || sizes.size() < 3) return {};
  auto others = sizes;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(index));
  return ScaleModel(setting, others).seconds(sizes[index].ranks);
}

}  // namespace hortator::tools
