#pragma once

#include <hortator/model.hpp>
#include <hortator/optimizer.hpp>
#include <memory>

/// Finds objects that prepare() was given before. An address alone does not identify an object, since memory is reused,
/// on some ranks only: an object at the address of a destroyed one is recognised by its parameters. All functions throw
/// on all ranks if some ranks have prepared the object and others have not.
namespace hortator::accelerator {

class Training;

/// Returns null for a new module. UsageError if a prepared plain module at its address was destroyed. @collective
std::shared_ptr<step::ModelCore> prepared_before(const Training& training, const torch::nn::Module& module);

/// Returns null for a new optimizer; forgets a destroyed one that was at its address. @collective
std::shared_ptr<step::OptimizerCore> prepared_before(Training& training, const torch::optim::Optimizer& optimizer);

}  // namespace hortator::accelerator
