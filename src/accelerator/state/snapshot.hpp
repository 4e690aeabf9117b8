#pragma once

#include <set>

#include "accelerator/state/model_selection.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"

namespace hortator::accelerator {

class Training;

/// Returns everything that a resumed run needs: models/<i>/..., optimizers/<i>/..., schedules/<i>/..., loaders/<i>/...,
/// scaler/..., objects/<name>/... and the run's own numbers, the same on all ranks; and this rank's random number
/// generators. `next_iteration` is the number that the next checkpoint will have. If it cannot on one rank, all throw.
/// @collective
checkpoint::Snapshot take_snapshot(Training& training, std::int64_t next_iteration,
                                   const ModelSelection& selection = {});

/// Restores a snapshot. Finds whatever does not fit before anything is changed and throws Error; unless it is `strict`,
/// only warns and skips it. `rank` is this process's of `world`. Restores only this rank's slices of sharded
/// parameters: publish them afterwards. Models in `left_out`, and tensors that the save has left out, stay as they are.
/// FileError if the checkpoint is damaged; a part of it may then be in place.
void restore_snapshot(Training& training, const checkpoint::Reader& reader, int rank, int world, bool strict,
                      const std::set<std::size_t>& left_out = {});

/// Whether each of `world` ranks finds what a rank with its place in the mesh has saved.
bool has_same_ranks(const Training& training, const checkpoint::Reader& reader, int world);

/// Restores the scale of the loss; `saved` is empty if it was not saved. If the precision differs from the saved run's,
/// rank 0 logs a warning.
void restore_scaler(const Training& training, const StateDict& saved, int rank);

}  // namespace hortator::accelerator
