#pragma once

#include <hortator/schedule.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "simulation/settings/section.hpp"

namespace hortator::simulation {

/// Makes the optimizer that `optimizer:` of a model's section asks for; null if there is none. Throws UsageError for an
/// unknown type or option.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Section& model,
                                                        const std::vector<at::Tensor>& parameters);

/// Makes the schedule that `schedule:` asks for; nothing if there is none.
std::optional<Schedule> make_schedule(const Section& model, torch::optim::Optimizer& optimizer);

}  // namespace hortator::simulation
