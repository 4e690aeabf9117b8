#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "parallel/tensor/divided_module.hpp"

/// The MoE layers of a prepared model.
namespace hortator::parallel {

/// Whether the module has, or is, a MoE layer.
bool has_experts(torch::nn::Module& module);

/// Throws UsageError if the module has no MoE layers, or if their experts cannot be divided among that many ranks. Does
/// not communicate.
void check_experts(torch::nn::Module& module, int ranks);

/// Divides the experts of all MoE layers of the module equally among `ranks`. Call
/// check_experts() before. Communicates as `settle` does, which DividedModule calls.
std::unique_ptr<DividedModule> divide_experts(torch::nn::Module& module, const SharedRanks& ranks,
                                              const DividedModule::Settle& settle = {});

/// Makes balance losses of all MoE layers of the module count the tokens of `ranks`; null: of this rank.
void count_tokens_over(torch::nn::Module& module, const SharedRanks& ranks);

}  // namespace hortator::parallel
