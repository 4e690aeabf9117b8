#pragma once

#include <ATen/ATen.h>
#include <torch/nn/functional/loss.h>

#include <cstdint>

/// A sum of losses, and the number of tokens in it.
struct LossSum {
  at::Tensor sum;
  at::Tensor tokens;
};

/// Returns the loss of scores [batch, time, vocabulary] for the target [batch, time], ignoring ends of lines.
inline LossSum masked_cross_entropy(const at::Tensor& scores, const at::Tensor& target) {
  namespace nn = torch::nn::functional;
  constexpr std::int64_t end_of_line = '\n';
  const auto is_end = target == end_of_line;
  const auto learned = target.masked_fill(is_end, -100);
  return {.sum = nn::cross_entropy(scores.flatten(0, 1), learned.flatten(),
                                   nn::CrossEntropyFuncOptions().ignore_index(-100).reduction(torch::kSum)),
          .tokens = is_end.logical_not().sum()};
}
