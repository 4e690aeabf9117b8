#pragma once

#include <cstddef>

/// Memory straight from the system, in whole pages of it.
namespace hortator::machine {

std::size_t whole_pages(std::size_t bytes);
/// Zeroed; null: there is none.
std::byte* map_memory(std::size_t bytes) noexcept;
/// The same content, as far as it fits, perhaps elsewhere; null: there is not so much, and all is as it was.
std::byte* resize_memory(std::byte* data, std::size_t bytes, std::size_t new_bytes) noexcept;
void unmap_memory(std::byte* data, std::size_t bytes) noexcept;

}  // namespace hortator::machine
