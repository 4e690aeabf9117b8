#pragma once

#include <cstdint>
#include <vector>

#include "core/range.hpp"

/// Which layers each stage of a pipeline runs. Pure.
namespace hortator::parallel {

/// Costs of the parts of a model, in any unit.
struct LayerCosts {
  double before = 0;  ///< what comes before the layers
  std::vector<double> layers = {};
  double after = 0;  ///< what comes after them
};

/// Cuts the layers into `stages` ranges, in order and at least one layer each, so that the most expensive stage costs
/// as little as possible; of these cuts, one whose stages are as even as possible. The first stage also bears
/// `costs.before`, the last one `costs.after`. Throws UsageError if there are fewer layers than stages.
std::vector<core::Range> cut_layers(const LayerCosts& costs, int stages);

}  // namespace hortator::parallel
