#pragma once

#include <string_view>

#include "mpi/communicator.hpp"

namespace hortator::accelerator {

class Training;

/// Throws UsageError if some optimizer could not be taken over, because it saves nothing of what it remembers.
void require_takeover(const Training& training, std::string_view scope);

/// Gives all ranks of `host` what the loop of one of them has changed besides models: the optimizers' and schedules'
/// states, the count of micro-steps, the epoch of loaders, and registered objects that hold tensors (an average of the
/// weights). Random numbers, and objects that only hold numbers and text, stay each rank's own. @collective
void take_over_steps(Training& training, const mpi::Communicator& host, int rank);

}  // namespace hortator::accelerator
