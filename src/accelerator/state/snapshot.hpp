#pragma once

#include "accelerator/training/training.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"

namespace hortator::accelerator {

/// Everything that a resumed run needs: models/<i>/..., optimizers/<i>/..., schedules/<i>/..., loaders/<i>/...,
/// scaler/..., objects/<name>/... and the run's own numbers, the same on all ranks; and this rank's random number
/// generators. `next_iteration` is the number that the next checkpoint will have.
checkpoint::Snapshot take_snapshot(const Training& training, std::int64_t next_iteration);

/// Puts it back. Whatever does not fit is found before anything is changed; unless it is `strict`, that is only warned
/// of and left. `rank` is this process's. Sharded parameters are this rank's part alone until they are published.
/// FileError: the checkpoint is damaged, and a part of it may be in place.
void restore_snapshot(Training& training, const checkpoint::Reader& reader, int rank, int world, bool strict);

/// The scale of the loss, empty where it was not saved. Another precision than before is the run's choice, and rank 0
/// says so.
void restore_scaler(const Training& training, const StateDict& saved, int rank);

}  // namespace hortator::accelerator
