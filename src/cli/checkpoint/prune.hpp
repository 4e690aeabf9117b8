#pragma once

#include "cli/verbs.hpp"

namespace hortator::cli::checkpoints {

/// hortator checkpoint prune: the newest stay, older ones go.
int prune(const Arguments& arguments);

}  // namespace hortator::cli::checkpoints
