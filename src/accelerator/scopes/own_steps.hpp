#pragma once

#include <string_view>

#include "step/model/model_core.hpp"

namespace hortator::accelerator {

class Training;

/// Throws UsageError, which names `call`, if ranks train one model together, so that none can take steps of its own.
void require_own_steps(const Training& training, std::string_view call);

/// Throws UsageError, which names `call`, if the ranks along shard cannot train `model` without the others.
void require_group_steps(const Training& training, const step::ModelCore& model, std::string_view call);

}  // namespace hortator::accelerator
