#include "models/generation/staged_forward.hpp"

#include <hortator/detail/stages.hpp>
#include <hortator/models/generate.hpp>

namespace hortator::models {

ModelOutputs evaluate(PretrainedModel& model, const ModelInputs& inputs) {
  ModelOutputs outputs;
  const auto run = [&] { outputs = model.forward(inputs); };
  if (!detail::forward_through_stages(model, run,
                                      {&outputs.logits, &outputs.last_hidden_state, &outputs.pooler_output}))
    run();
  return outputs;
}

ModelOutputs logits_of(PretrainedModel& model, const ModelInputs& inputs) {
  ModelOutputs outputs;
  const auto run = [&] { outputs = model.forward(inputs); };
  if (!detail::forward_through_stages(model, run, {&outputs.logits})) run();
  return outputs;
}

}  // namespace hortator::models
