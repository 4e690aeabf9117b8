#include "parallel/pipeline/stage_cut.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <limits>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::parallel {
namespace {

/// The largest cost of a stage, then the sum of squares.
using Quality = std::pair<double, double>;

/// The best cut of the layers up to `end` into a number of stages, from the best cuts into one stage less.
struct BestCut {
  Quality quality = {std::numeric_limits<double>::infinity(), 0};
  std::int64_t begin = 0;  ///< of the last stage
};

}  // namespace

std::vector<core::Range> cut_layers(const LayerCosts& costs, int stages) {
  const auto layers = static_cast<std::int64_t>(costs.layers.size());
  if (stages < 1 || layers < stages) {
    throw UsageError({.what = text::concat("A model of ", text::count(static_cast<int>(layers), "layer"),
                                           " was to be cut into ", text::count(stages, "stage")),
                      .why = "each stage of a pipeline runs at least one layer",
                      .hint = "use fewer ranks along parallel.pipeline"});
  }
  std::vector<double> sums = {0};
  for (const auto cost : costs.layers) sums.push_back(sums.back() + cost);
  const auto cost_of = [&](std::int64_t begin, std::int64_t end, int stage) {
    return sums[static_cast<std::size_t>(end)] - sums[static_cast<std::size_t>(begin)] +
           (stage == 0 ? costs.before : 0) + (stage + 1 == stages ? costs.after : 0);
  };
  std::vector<std::vector<BestCut>> best(static_cast<std::size_t>(stages),
                                         std::vector<BestCut>(static_cast<std::size_t>(layers) + 1));
  for (int stage = 0; stage < stages; ++stage) {
    for (std::int64_t end = stage + 1; end <= layers; ++end) {
      auto& cut = best[static_cast<std::size_t>(stage)][static_cast<std::size_t>(end)];
      const auto consider = [&](std::int64_t begin, const Quality& before) {
        const auto cost = cost_of(begin, end, stage);
        const Quality quality(std::max(before.first, cost), before.second + cost * cost);
        if (quality < cut.quality) cut = {.quality = quality, .begin = begin};
      };
      if (stage == 0) {
        consider(0, {0, 0});
        continue;
      }
      for (std::int64_t begin = stage; begin < end; ++begin)
        consider(begin, best[static_cast<std::size_t>(stage) - 1][static_cast<std::size_t>(begin)].quality);
    }
  }
  std::vector<core::Range> ranges(static_cast<std::size_t>(stages));
  auto end = layers;
  for (int stage = stages - 1; stage >= 0; --stage) {
    const auto begin = best[static_cast<std::size_t>(stage)][static_cast<std::size_t>(end)].begin;
    ranges[static_cast<std::size_t>(stage)] = {.begin = begin, .end = end};
    end = begin;
  }
  return ranges;
}

}  // namespace hortator::parallel
