#pragma once

#include "tools/verbs.hpp"

/// Weights between our checkpoints and others' files. Several ranks share the work: hortator launch -n 4 hortator
/// checkpoint ...; alone is one.
namespace hortator::tools::checkpoints {

/// hortator checkpoint export: a model's weights into a file of safetensors or of torch.save.
int export_weights(const Arguments& arguments);

/// hortator checkpoint import: weights of any kind into a checkpoint, whose model number 0 they are.
int import_weights(const Arguments& arguments);

}  // namespace hortator::tools::checkpoints
