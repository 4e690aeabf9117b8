#pragma once

#include "tools/verbs.hpp"

namespace hortator::tools::checkpoints {

/// hortator checkpoint prune: removes all but the newest checkpoints.
int prune(const Arguments& arguments);

}  // namespace hortator::tools::checkpoints
