#include <c10/core/GradMode.h>

#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <hortator/training/gradient_norms.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "core/text/text.hpp"
#include "step/gradients/sharded_norm.hpp"
#include "step/model/model_core.hpp"

namespace hortator {

GradientNorms gradient_norms(Accelerator& accelerator, const ModelBase& model, double norm_type) {
  const CallSite site(__builtin_return_address(0));
  if (!(norm_type > 0)) {
    throw UsageError({.what = text::concat("gradient_norms() got the norm type ", norm_type),
                      .why = "gradients of several ranks are put together by norms of a type above 0",
                      .hint = "use 2, 1 or infinity"});
  }
  model.core().check_alive();
  auto& training = accelerator::Training::of(accelerator);
  GradientNorms found;
  std::vector<at::Tensor> parameters;
  for (const auto& item : model.core().module().named_parameters()) {
    if (!item.value().requires_grad()) continue;
    found.names.push_back(item.key());
    parameters.push_back(item.value());
  }
  training.synchronise_gradients();
  if (!training.control.is_partial()) training.control.unscale_gradients_of(parameters);
  const at::NoGradGuard no_grad;
  std::vector<step::GradientHolders> holders;
  for (const auto& parameter : parameters)
    holders.push_back(training.prepared.gradient_holders(training.prepared.counted({parameter})));
  found.norms = step::norm_of_each(holders, norm_type, training.channels.ranks_of_norms());
  return found;
}

}  // namespace hortator
