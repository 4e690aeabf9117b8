#pragma once

#include <hortator/parallel/tensor_plan.hpp>
#include <string>
#include <vector>

/// Rules that the tensor plans of several families have in common. `head` is the width of an attention head.
namespace hortator::models {

TensorRule by_heads(std::string pattern, TensorDivision division, int head);

/// Heads that groups of queries share: each rank has all of them where they are too few to be divided.
TensorRule by_shared_heads(std::string pattern, int head);

/// A vocabulary that is too small to be divided is replicated.
TensorRule by_vocabulary(std::string pattern);

/// A layer whose weight is stored as [inputs, outputs].
TensorRule transposed(TensorRule rule, int blocks = 1);

/// The layers of an encoder: each family has its own names.
struct EncoderNames {
  const char *query, *key, *value, *out, *up, *down;
  std::vector<const char*> vocabulary = {};
};

TensorPlan encoder_plan(const EncoderNames& names, int head);

}  // namespace hortator::models
