#include "simulation/border/arguments.hpp"
#include "simulation/border/guarded.hpp"
#include "simulation/calls/local_outcome.hpp"
#include "simulation/communicator_of.hpp"
#include "simulation/share_samples.hpp"
#include "simulation/share_weights.hpp"

using namespace hortator::simulation;

hortator_status hortator_share_weights(int32_t comm, hortator_model* from, hortator_model* to) {
  return guarded_collective([&] {
    const auto all = communicator_of(comm);
    TrainedModel* giver = nullptr;
    TrainedModel* taker = nullptr;
    all_succeed(all, [&] {
      giver = optional_model(from, "from");
      taker = optional_model(to, "to");
    });
    share_weights(all, giver, taker);
    return HORTATOR_OK;
  });
}

hortator_status hortator_share_samples(int32_t comm, hortator_buffer* from, hortator_buffer* to) {
  return guarded_collective([&] {
    const auto all = communicator_of(comm);
    RunBuffer* giver = nullptr;
    RunBuffer* taker = nullptr;
    all_succeed(all, [&] {
      giver = optional_buffer(from, "from");
      taker = optional_buffer(to, "to");
    });
    return share_samples(all, giver, taker) > 0 ? HORTATOR_OK : HORTATOR_NOTHING;
  });
}
