#pragma once

#include "tools/verbs.hpp"

/// Converts weights between checkpoints and files of other programs. Several ranks can share the work: hortator launch
/// -n 4 hortator checkpoint ...
namespace hortator::tools::checkpoints {

/// hortator checkpoint export: writes the weights of a model to a file of safetensors or torch.save.
int export_weights(const Arguments& arguments);

/// hortator checkpoint merge: the same, named as Accelerate names it for the parts that FSDP saved.
int merge_weights(const Arguments& arguments);

/// hortator checkpoint import: writes weights of any format to a checkpoint, as its model number 0.
int import_weights(const Arguments& arguments);

}  // namespace hortator::tools::checkpoints
