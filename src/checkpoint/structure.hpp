#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/layout.hpp"
#include "checkpoint/outline.hpp"
#include "formats/hdf5/handle.hpp"

namespace hortator::checkpoint {

/// What a checkpoint holds, without the tensors' values: what all ranks have, and what each alone has.
struct Description {
  Outline common = {};
  std::vector<Outline> own = {};
};

/// Puts everything but the tensors' bytes into file number `index`: a dataset for each tensor or part of one, values as
/// attributes of groups (those that all ranks have in the first file only). Returns the place of each dataset that has
/// elements, in the order of Layout::tensors. @collective on a file that several ranks have open
std::vector<std::int64_t> write_structure(const formats::File& file, std::size_t index, const Layout& layout,
                                          const Description& description);

}  // namespace hortator::checkpoint
