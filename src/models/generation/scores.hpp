#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/models/generate.hpp>
#include <set>

namespace hortator::models {

// Options are those that with_defaults() returns.

/// Throws UsageError for options out of range.
void require_valid(const GenerateOptions& options);

/// Changes the scores [batch, vocabulary] of tokens that the texts [batch, time] have, by the repetition penalty.
at::Tensor penalised(const at::Tensor& scores, const at::Tensor& texts, double penalty);

/// The scores with those of some tokens at -infinity.
at::Tensor without_tokens(const at::Tensor& scores, const std::set<std::int64_t>& tokens);

/// Removes unlikely tokens as the options ask: their scores become -infinity. Applies the temperature first. Pure.
at::Tensor restricted(at::Tensor scores, const GenerateOptions& options);

/// A random number in [0, 1) that depends on nothing else.
double uniform(std::uint64_t seed, std::uint64_t prompt, std::uint64_t step);

/// The token at which the sum of probabilities of a row exceeds `random`, and so on for each row. `random` is [batch].
at::Tensor drawn(const at::Tensor& scores, const at::Tensor& random);

}  // namespace hortator::models
