#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/range.hpp"

namespace hortator::checkpoint {

/// Reads `bytes` bytes at `offset` of a file into `data`.
using ReadAt = std::function<void(std::int64_t offset, void* data, std::size_t bytes)>;

/// The checksum of all bytes of a file outside `ranges`, in file order. With the ranges of the tensors, this covers the
/// file's structure.
std::uint32_t gap_checksum(std::vector<core::Range> ranges, std::int64_t file_bytes, const ReadAt& read);

}  // namespace hortator::checkpoint
