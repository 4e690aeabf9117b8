#include "simulation/settings/model_parts.hpp"

#include "simulation/networks/networks.hpp"
#include "simulation/settings/optimizer.hpp"
#include "simulation/settings/schedule.hpp"

namespace hortator::simulation {
namespace {

std::optional<double> limit_of(const Section& section, const char* key) {
  if (!section.has(key)) return {};
  const double limit = section.number(key);
  if (!(limit > 0)) throw section.error(key, "expected a limit above 0", "leave the key out for no limit");
  return limit;
}

}  // namespace

ModelParts make_model(const Section& section) {
  ModelParts parts{.network = make_network(section), .loss = make_loss(section), .weighing = read_weighing(section)};
  for (const auto& parameter : parts.network->parameters()) {
    if (parameter.requires_grad()) parts.learning.push_back(parameter);
  }
  parts.optimizer = make_optimizer(section, parts.learning);
  if (parts.optimizer) {
    parts.schedule = make_schedule(section, *parts.optimizer);
    parts.max_norm = limit_of(section, "clip_grad_norm");
    parts.max_value = limit_of(section, "clip_grad_value");
  }
  section.finish();
  return parts;
}

}  // namespace hortator::simulation
