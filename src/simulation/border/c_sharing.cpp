#include "simulation/border/arguments.hpp"
#include "simulation/border/guarded.hpp"
#include "simulation/communicator_of.hpp"
#include "simulation/share_samples.hpp"
#include "simulation/share_weights.hpp"

using namespace hortator::simulation;

hortator_status hortator_share_weights(int32_t comm, hortator_model* from, hortator_model* to) {
  return guarded([&] {
    share_weights(communicator_of(comm), static_cast<TrainedModel*>(from), static_cast<TrainedModel*>(to));
    return HORTATOR_OK;
  });
}

hortator_status hortator_share_samples(int32_t comm, hortator_buffer* from, hortator_buffer* to) {
  return guarded([&] {
    const auto moved = share_samples(communicator_of(comm), static_cast<RunBuffer*>(from), static_cast<RunBuffer*>(to));
    return moved > 0 ? HORTATOR_OK : HORTATOR_NOTHING;
  });
}
