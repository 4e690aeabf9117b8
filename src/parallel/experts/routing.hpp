#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/nn/moe.hpp>
#include <optional>
#include <vector>

/// Which tokens go to which experts. Does not communicate.
namespace hortator::parallel {

/// What the router's logits, [tokens, experts], decide. `dropped` is not set.
nn::Routing route(const at::Tensor& logits, const nn::MoEOptions& options);

/// The number of choices that one expert takes; nothing without a limit.
std::optional<std::int64_t> capacity_of(const nn::MoEOptions& options, std::int64_t tokens);

/// Choices in the order of their experts. Choice c of token t has the number c x tokens + t.
struct Assignment {
  at::Tensor choices = {};                ///< the numbers of those that an expert takes
  std::vector<std::int64_t> counts = {};  ///< of each expert
};

/// Assigns `chosen`, [tokens, top_k]. An expert takes first choices first, and tokens in their order, up to `capacity`.
Assignment assign(const at::Tensor& chosen, std::int64_t experts, std::optional<std::int64_t> capacity);

/// The sum of what experts have computed for each token, [tokens, width]. `outputs` are the rows of `choices`;
/// `weights`, [tokens, top_k], those of each choice.
at::Tensor combined(const at::Tensor& outputs, const at::Tensor& choices, const at::Tensor& weights);

}  // namespace hortator::parallel
