#pragma once

#include "tools/verbs.hpp"

namespace hortator::tools::checkpoints {

/// hortator checkpoint prune: the newest stay, older ones go.
int prune(const Arguments& arguments);

}  // namespace hortator::tools::checkpoints
