#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "exported/graph/program.hpp"

namespace hortator::exported {

/// Which inputs of a graph no node and no result of it uses. Pure.
std::vector<bool> unused_inputs(const Graph& graph);

/// Makes the results of a branch of torch.cond depend on all its operands, as in Python: those in `unused`, which the
/// branch that ran does not use, get gradients of zeros, and a result without a gradient counts as one of zeros. Does
/// nothing unless gradients are recorded and an operand requires one.
void join_gradients(std::vector<c10::IValue>& results, const std::vector<c10::IValue>& operands,
                    const std::vector<bool>& unused);

}  // namespace hortator::exported
