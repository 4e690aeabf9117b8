#pragma once

#include <hortator/bigmodel/big_models.hpp>

#include "bigmodel/module_tree.hpp"

namespace hortator::bigmodel {

/// Lowers the limits of `options.max_memory` so that CUDA devices hold about equal parts. Each device but the last may
/// hold its share plus a reserve, since layers do not fill shares exactly.
MaxMemory balanced_memory(const ModuleTree& tree, const BalanceOptions& options);

}  // namespace hortator::bigmodel
