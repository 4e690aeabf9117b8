#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "parallel/tensor/divided_module.hpp"

/// The MoE layers of a prepared model.
namespace hortator::parallel {

/// Whether the module has, or is, a MoE layer.
bool has_experts(torch::nn::Module& module);

/// Divides the experts of all MoE layers of the module among `ranks`, each of which gets an equal part. Throws
/// UsageError, before any change, if there are none or they cannot be divided. Does not communicate.
std::unique_ptr<DividedModule> divide_experts(torch::nn::Module& module, const SharedRanks& ranks);

/// Makes balance losses of all MoE layers of the module count the tokens of `ranks`; null: of this rank.
void count_tokens_over(torch::nn::Module& module, const SharedRanks& ranks);

}  // namespace hortator::parallel
