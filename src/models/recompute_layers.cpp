#include <hortator/error.hpp>
#include <hortator/models/model.hpp>

#include "core/text/text.hpp"

namespace hortator::models {

void PretrainedModel::set_recompute_layers(bool on) {
  bool is_possible = false;
  for (const auto& module : modules(/*include_self=*/false)) {
    auto* part = dynamic_cast<PretrainedModel*>(module.get());
    if (part == nullptr || !part->has_recomputable_layers()) continue;
    part->recomputes_layers_ = on;
    is_possible = true;
  }
  if (!is_possible && !has_recomputable_layers() && on)
    throw UsageError({.what = text::concat("The layers of a ", config_.architecture, " cannot be recomputed"),
                      .hint = "models of the Llama family and GPT-2 can; others need a smaller batch"});
  recomputes_layers_ = on;
}

}  // namespace hortator::models
