#include "accelerator/dispatch/placed_loading.hpp"
#include "accelerator/weights/loading.hpp"
#include "core/log.hpp"
#include "weights/module_weights.hpp"

namespace hortator::detail {

void load_weights(torch::nn::Module& module, const std::filesystem::path& checkpoint,
                  const LoadWeightsOptions& options) {
  const accelerator::Loading loading(module, checkpoint, options);
  if (!loading.omissions().empty()) log::warn(loading.omissions());
  if (!options.device_map.empty()) return accelerator::load_in_places(loading, module, options);
  loading.prepare_module();
  weights::fill(loading.source(), loading.fillings());
  loading.require_tied();
}

}  // namespace hortator::detail
