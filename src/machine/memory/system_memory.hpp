#pragma once

#include <cstddef>

/// Memory directly from the system, in whole pages.
namespace hortator::machine {

std::size_t whole_pages(std::size_t bytes);
/// Returns zeroed memory; null on failure.
std::byte* map_memory(std::size_t bytes) noexcept;
/// Resizes the memory, possibly at another address, and keeps the content as far as it fits. Returns null on failure;
/// the old memory is then unchanged.
std::byte* resize_memory(std::byte* data, std::size_t bytes, std::size_t new_bytes) noexcept;
void unmap_memory(std::byte* data, std::size_t bytes) noexcept;

}  // namespace hortator::machine
