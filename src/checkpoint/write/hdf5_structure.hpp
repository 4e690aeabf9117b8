#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/state_outline.hpp"
#include "checkpoint/write/layout.hpp"
#include "formats/hdf5/handle.hpp"

namespace hortator::checkpoint {

/// The contents of a checkpoint without the tensors' elements: the common state, and each rank's own state.
struct StateDescription {
  StateOutline common = {};
  std::vector<StateOutline> own = {};
};

/// Writes everything but the tensors' elements to file number `index`: a dataset for each tensor or piece of one there,
/// and values as attributes of groups (common values in the first file only). Returns the offset of each dataset that
/// has elements, in the order of Layout::tensors. @collective on a file that several ranks have open
std::vector<std::int64_t> write_hdf5_structure(const formats::File& file, std::size_t index, const Layout& layout,
                                               const StateDescription& description);

}  // namespace hortator::checkpoint
