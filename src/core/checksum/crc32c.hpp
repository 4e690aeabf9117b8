#pragma once

#include <cstddef>
#include <cstdint>

/// CRC-32C (Castagnoli), the checksum of iSCSI, ext4 and SSE4.2: the same on every machine, and faster than memory
/// where the processor has an instruction for it.
namespace hortator::core {

/// Of `bytes` bytes at `data`, after those that gave `before`: crc32c(b, n, crc32c(a, m)) is that of a and b together.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);

/// The same without the processor's instruction: for those that have none, and to compare with.
std::uint32_t crc32c_portable(const void* data, std::size_t bytes, std::uint32_t before = 0);

/// Of bytes that were read apart: from `a` of the first part, and `b` of the `bytes_of_b` bytes after it.
std::uint32_t crc32c_joined(std::uint32_t a, std::uint32_t b, std::size_t bytes_of_b);

}  // namespace hortator::core
