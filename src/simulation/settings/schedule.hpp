#pragma once

#include <hortator/schedule.hpp>
#include <optional>

#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// Makes the schedule that `schedule:` asks for; nothing if there is none.
std::optional<Schedule> make_schedule(const Section& model, torch::optim::Optimizer& optimizer);

}  // namespace hortator::simulation
