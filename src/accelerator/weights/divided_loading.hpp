#pragma once

#include <vector>

#include "accelerator/channels/channels.hpp"
#include "accelerator/weights/loading.hpp"
#include "step/model/model_core.hpp"

namespace hortator::accelerator {

/// Fills the divided parameters of a model: each rank keeps what it has of them, and one whole tensor is in memory at a
/// time. Returns the fillings of the other tensors, which are not filled. For sharded parameters, only this rank's
/// slices are filled: publish them afterwards. If `each_reads`, every rank reads its parts; otherwise one rank reads
/// for all.
/// @collective
std::vector<weights::Filling> load_divided(const Loading& loading, const step::ModelCore& model, Channels& channels,
                                           bool each_reads);

}  // namespace hortator::accelerator
