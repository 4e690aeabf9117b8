#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/range.hpp"

namespace hortator::checkpoint {

/// Reads `bytes` bytes at `offset` of a file.
using ReadAt = std::function<void(std::int64_t offset, void* data, std::size_t bytes)>;

/// The checksum of all bytes of a file that lie outside of these stretches, in their order: its structure.
std::uint32_t checksum_between(std::vector<core::Range> stretches, std::int64_t file_bytes, const ReadAt& read);

}  // namespace hortator::checkpoint
