#pragma once

#include "tools/verbs.hpp"

namespace hortator::tools::checkpoints {

/// hortator checkpoint diff: compares two checkpoints, or models in files of any format. Returns 0: equal, 1:
/// different, 2: an input cannot be read.
int diff(const Arguments& arguments);

}  // namespace hortator::tools::checkpoints
