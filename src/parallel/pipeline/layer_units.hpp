#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

namespace hortator::parallel {

/// The parts of a module between which stages may be cut, by name, in the order in which they are registered: its
/// children, and in the place of a list of layers these layers. Where that gives fewer than `stages` with parameters,
/// parts are taken apart, the largest first. Pure.
std::vector<std::string> layer_units(const torch::nn::Module& module, int stages);

}  // namespace hortator::parallel
