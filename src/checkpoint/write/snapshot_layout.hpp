#pragma once

#include <set>
#include <string>
#include <vector>

#include "checkpoint/write/layout.hpp"
#include "checkpoint/write/save.hpp"
#include "checkpoint/write/tensor_source.hpp"

/// What a snapshot holds, for a layout. Local.
namespace hortator::checkpoint {

/// The common entries, sharded tensors as wholes.
StateOutline common_outline(const Snapshot& snapshot);
ShardRanges ranges_of(const Snapshot& snapshot);
/// The file that each rank writes to: as the options have it, or one for all ranks.
std::vector<std::size_t> files_of(const SaveOptions& options, const Snapshot& snapshot, int ranks);
/// Where the elements are that a rank writes.
std::vector<TensorSource> sources_of(const Snapshot& snapshot, const Layout& layout, int rank);

}  // namespace hortator::checkpoint
