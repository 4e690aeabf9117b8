#pragma once

#include <hortator/datasets/loader_base.hpp>
#include <string>

#include "parallel/data_parallel/data_parallel.hpp"

/// What prepare() gives the user's objects of the run: the ranks that they work with, and what is called on their way.
namespace hortator::accelerator {

class Training;

/// For a model: the ranks that average its gradients.
parallel::DataParallel model_binding(Training& training, const std::string& name);

/// For a loader that is prepared next: which part of each batch this rank gets. @collective
LoaderBinding loader_binding(Training& training, const LoaderBase& loader, bool device_placement);

}  // namespace hortator::accelerator
