#include <hortator/models/from_settings.hpp>

#include "simulation/settings/model_parts.hpp"
#include "simulation/settings/run_settings.hpp"

namespace hortator {

ConfiguredModel from_settings(const std::filesystem::path& file, const std::string& name) {
  const auto content = simulation::read_settings_file(file.string());
  const auto settings =
      simulation::read_run_settings(simulation::parse_settings(content, file.string()), file.string());
  auto parts = simulation::make_model(settings.model(name));
  return {.network = std::move(parts.network),
          .loss = std::move(parts.loss),
          .optimizer = std::move(parts.optimizer),
          .schedule = std::move(parts.schedule),
          .clip_grad_norm = parts.max_norm,
          .clip_grad_value = parts.max_value};
}

}  // namespace hortator
