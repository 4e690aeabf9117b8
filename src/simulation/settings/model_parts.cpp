#include "simulation/settings/model_parts.hpp"

#include "simulation/networks/networks.hpp"
#include "simulation/settings/optimizer.hpp"
#include "simulation/settings/schedule.hpp"

namespace hortator::simulation {

ModelParts make_model(const Section& section) {
  ModelParts parts{.network = make_network(section), .loss = make_loss(section)};
  for (const auto& parameter : parts.network->parameters()) {
    if (parameter.requires_grad()) parts.learning.push_back(parameter);
  }
  parts.optimizer = make_optimizer(section, parts.learning);
  if (parts.optimizer) {
    parts.schedule = make_schedule(section, *parts.optimizer);
    if (section.has("clip_grad_norm")) parts.max_norm = section.number("clip_grad_norm");
    if (section.has("clip_grad_value")) parts.max_value = section.number("clip_grad_value");
  }
  section.finish();
  return parts;
}

}  // namespace hortator::simulation
