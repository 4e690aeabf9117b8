#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::models {

/// The scores of the next token of each row, float32, [rows, vocabulary]: the last of `logits`, which are joined if the
/// vocabulary is divided among ranks. @collective over the ranks of a divided model
at::Tensor next_scores(const at::Tensor& logits);

}  // namespace hortator::models
