#include <hortator/models/from_settings.hpp>

#include "simulation/settings/model_parts.hpp"
#include "simulation/settings/run_settings.hpp"

namespace hortator {

ConfiguredModel from_settings(const std::filesystem::path& file, const std::string& name) {
  const auto content = simulation::read_settings_file(file.string());
  const auto settings =
      simulation::read_run_settings(simulation::parse_settings(content, file.string()), file.string());
  const auto model = settings.model(name);
  if (model.flag("normalize", false)) {
    throw model.error("normalize", "only a run of a simulation code has the statistics of a buffer",
                      "leave it out, and normalise your data or within the module");
  }
  model.ignore({"infer_together"});  // of the ranks of a run
  auto parts = simulation::make_model(model);
  return {.network = std::move(parts.network),
          .loss = std::move(parts.loss),
          .optimizer = std::move(parts.optimizer),
          .schedule = std::move(parts.schedule),
          .clip_grad_norm = parts.max_norm,
          .clip_grad_value = parts.max_value};
}

}  // namespace hortator
