#pragma once

#include "accelerator/channels/channels.hpp"
#include "accelerator/weights/loading.hpp"
#include "step/model/model_core.hpp"

/// Fills modules from weights: each rank reads what it has of sharded and divided parameters.
namespace hortator::accelerator {

/// The divided parameters of a model; null if there are none, or while each rank has whole ones. `model` may be null.
parallel::DividedModule* divided_in(const step::ModelCore* model);
/// The same for sharded parameters.
parallel::ShardedModel* shards_in(const step::ModelCore* model);

/// Fills the module that was compared with the weights; `model` is the prepared one, null if there is none. Of 16-bit
/// parameters with an fp32 copy, the copy takes the values as they are stored. If `each_reads`, every rank reads
/// tensors that it has as a whole; otherwise one rank reads them for all, whose `loading` must be equal. If one rank
/// fails, all throw. @collective
void fill_module(const Loading& loading, const step::ModelCore* model, Channels& channels, bool each_reads);

}  // namespace hortator::accelerator
