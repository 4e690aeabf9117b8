#pragma once

#include <cstdint>
#include <functional>

#include "checkpoint/write/save_task.hpp"

namespace hortator::checkpoint {

/// Called with the number of bytes of tensors that this rank has just written.
using Advance = std::function<void(std::int64_t)>;

/// Writes this rank's part to the file without HDF5, and the file's structure if this rank creates it. Returns when all
/// of it is on the disk. `advance` may be empty.
RankReport write_part(const SaveTask& task, const Advance& advance = {});

}  // namespace hortator::checkpoint
