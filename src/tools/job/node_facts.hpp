#pragma once

#include "launch/job/job.hpp"

/// What the scheduler of this machine reports about its nodes.
namespace hortator::tools {

/// Sets the CPUs of a node that the settings leave open, to those of the nodes that the job may get. They are asked
/// from the scheduler, since this machine may be unlike its nodes. Warns if it does not answer: then each rank gets one
/// CPU.
void complete_cpus(launching::Job& job);

}  // namespace hortator::tools
