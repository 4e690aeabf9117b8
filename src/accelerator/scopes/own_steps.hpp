#pragma once

#include <string_view>

namespace hortator::accelerator {

class Training;

/// Throws UsageError, which names `call`, if ranks train one model together, so that none can take steps of its own.
void require_own_steps(const Training& training, std::string_view call);

/// Throws UsageError, which names `call`, if parameters are sharded over the ranks.
void require_whole_weights(const Training& training, std::string_view call);

}  // namespace hortator::accelerator
