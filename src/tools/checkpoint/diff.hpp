#pragma once

#include "tools/verbs.hpp"

namespace hortator::tools::checkpoints {

/// hortator checkpoint diff: compares two checkpoints, or models in files of any kind. 0: nothing differs, 1: something
/// does, 2: one of them cannot be read.
int diff(const Arguments& arguments);

}  // namespace hortator::tools::checkpoints
