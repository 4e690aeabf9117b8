#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "checkpoint/outline.hpp"

namespace hortator::checkpoint {

/// Where the bytes of each tensor begin in the file, in the order of the outline.
using Offsets = std::vector<std::int64_t>;

struct Structure {
  Offsets common = {};
  std::vector<Offsets> own = {};  ///< a rank each
};

/// Makes the file with everything but the tensors' bytes: one dataset a tensor, with its space, and the values. One
/// rank does it alone, through HDF5's serial driver: a full disk is then that rank's error, where it would hang the
/// others inside a collective call.
Structure write_structure(const std::filesystem::path& file, const Outline& common, const std::vector<Outline>& own);

}  // namespace hortator::checkpoint
