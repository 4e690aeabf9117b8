#pragma once

#include <torch/optim/optimizer.h>

#include "parallel/tensor/divided_module.hpp"

namespace hortator::step {

/// Cuts what an optimizer remembers of divided parameters as a whole down to this rank's parts: its state is from
/// before the model was divided, or was read from files. Leaves what is a part already. Local.
void divide_moments(torch::optim::Optimizer& optimizer, const parallel::DividedModule& divided);

/// The reverse: joins the parts that an optimizer remembers. `optimizer` is null if it was destroyed, on all ranks or
/// on none. If one rank of `host`, which contains the model's, fails, all throw. @collective over `host`
void join_moments(torch::optim::Optimizer* optimizer, const parallel::DividedModule& divided,
                  const mpi::Communicator& host);

/// Forgets what an optimizer remembers of parts, for parameters that become whole. Local.
void forget_moments(torch::optim::Optimizer& optimizer, const parallel::DividedModule& divided);

}  // namespace hortator::step
