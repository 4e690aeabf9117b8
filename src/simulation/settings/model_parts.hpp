#pragma once

#include <hortator/schedule.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "simulation/networks/network.hpp"
#include "simulation/sections/section.hpp"
#include "simulation/settings/loss.hpp"

namespace hortator::simulation {

/// What a model's section describes.
struct ModelParts {
  std::shared_ptr<Network> network = {};
  std::vector<at::Tensor> learning = {};  ///< parameters that get gradients
  Loss loss = {};
  LossWeighing weighing = LossWeighing::by_samples;
  std::unique_ptr<torch::optim::Optimizer> optimizer = {};  ///< null if there is none
  std::optional<Schedule> schedule = {};
  std::optional<double> max_norm = {};
  std::optional<double> max_value = {};
};

/// Makes all of it. Throws UsageError for keys that are not known. Local.
ModelParts make_model(const Section& section);

}  // namespace hortator::simulation
