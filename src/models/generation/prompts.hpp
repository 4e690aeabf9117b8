#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/models/generate.hpp>
#include <span>

namespace hortator::models {

/// Prompts padded on the left: all end at the same column.
struct PaddedPrompts {
  at::Tensor ids;   ///< [batch, time]; padding repeats the first token
  at::Tensor mask;  ///< [batch, time], 0 for padding; undefined if there is none
  at::Tensor positions;
};
PaddedPrompts padded(std::span<const Tokens> prompts, c10::Device device);

/// Throws UsageError for prompts that the model cannot continue by max_new_tokens.
void require_prompts(const std::vector<Tokens>& prompts, const ModelConfig& config, std::int64_t max_new_tokens);

}  // namespace hortator::models
