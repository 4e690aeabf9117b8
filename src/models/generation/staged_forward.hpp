#pragma once

#include <hortator/models/model.hpp>

namespace hortator::models {

/// forward() of a model in generation: logits only. Where the model's layers are on several ranks, all of them get the
/// last stage's. @collective along a pipeline
ModelOutputs logits_of(PretrainedModel& model, const ModelInputs& inputs);

}  // namespace hortator::models
