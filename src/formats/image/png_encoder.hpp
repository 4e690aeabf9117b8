#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hortator::formats {

/// An image as a PNG file, by itself alone: pictures are written also where no libpng is. Rows from the top, pixels of
/// `channels` bytes each: 1 (grey) or 3 (red, green, blue). Drawings shrink to little; photographs stay about as large
/// as they are.
std::string encode_png(std::span<const std::uint8_t> pixels, std::size_t width, std::size_t height, int channels);

}  // namespace hortator::formats
