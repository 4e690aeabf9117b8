#pragma once

#include <hortator/bigmodel/big_models.hpp>

#include "bigmodel/module_tree.hpp"

namespace hortator::bigmodel {

/// Of `options.max_memory`, what makes the parts on the CUDA devices about equal: each but the last may hold its share
/// and a reserve, since layers do not fill shares exactly.
MaxMemory balanced_memory(const ModuleTree& tree, const BalanceOptions& options);

}  // namespace hortator::bigmodel
