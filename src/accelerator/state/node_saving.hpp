#pragma once

namespace hortator::accelerator {

class Training;

/// Takes a checkpoint at each level of the nodes where rank 0 finds one due. Call it where the run could be saved and
/// stopped. @collective
void save_on_nodes(Training& training);

/// The updates after which the newest checkpoint of the project on disk was saved, of those that are whole and that no
/// load has found damaged; nothing if there is none.
/// Only rank 0 looks. @collective
std::optional<std::int64_t> updates_on_disk(const Training& training);

}  // namespace hortator::accelerator
