#include <hortator/models/model.hpp>

#include "models/layers/modules.hpp"

namespace hortator::models {

void PretrainedModel::set_recompute_layers(bool on) {
  for (const auto& module : modules(/*include_self=*/false))
    if (auto* part = dynamic_cast<PretrainedModel*>(module.get())) part->recomputes_layers_ = on;
  recomputes_layers_ = on;
}

std::vector<std::string> numbered_names(const std::string& prefix, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(prefix + std::to_string(i));
  return names;
}

}  // namespace hortator::models
