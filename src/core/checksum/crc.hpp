#pragma once

#include <cstddef>
#include <cstdint>

/// Cyclic redundancy checks of 32 bits.
namespace hortator::core {

/// CRC-32C (Castagnoli), the checksum of iSCSI, ext4 and SSE4.2: the same on every machine, and faster than memory with
/// the processor's instruction. The checksum of `bytes` bytes at `data`. To continue one, pass it as `before`:
/// crc32c(b, n, crc32c(a, m)) is the checksum of a followed by b.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);

/// The same without the processor's instruction: the fallback, and a reference for tests.
std::uint32_t crc32c_portable(const void* data, std::size_t bytes, std::uint32_t before = 0);

/// Joins checksums: `a` of the first part and `b` of the `bytes_of_b` bytes that follow it.
std::uint32_t crc32c_joined(std::uint32_t a, std::uint32_t b, std::size_t bytes_of_b);

/// CRC-32, the checksum of zip archives, of `bytes` bytes at `data`. To continue one, pass it as `before`.
std::uint32_t crc32(const void* data, std::size_t bytes, std::uint32_t before = 0);

}  // namespace hortator::core
