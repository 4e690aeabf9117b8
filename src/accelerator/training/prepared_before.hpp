#pragma once

#include <memory>

#include "accelerator/training/training.hpp"

/// What prepare() was given already. Addresses are used again, and on some ranks only: an object that stands where a
/// prepared one stood is known by its parameters. All of these throw on all ranks where one rank has prepared the
/// object and another has not.
namespace hortator::accelerator {

/// Null for a module that is new. Throws where it stands in the place of a plain one that is no more. @collective
std::shared_ptr<step::ModelCore> prepared_before(const Training& training, const torch::nn::Module& module);

/// Null for an optimizer that is new. One that is no more, whose place it has taken, is forgotten. @collective
std::shared_ptr<step::OptimizerCore> prepared_before(Training& training, const torch::optim::Optimizer& optimizer);

}  // namespace hortator::accelerator
