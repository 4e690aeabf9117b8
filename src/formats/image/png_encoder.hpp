#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hortator::formats {

/// Returns the contents of a PNG file. `pixels` holds rows from the top, each pixel `channels` bytes: 1 (grey) or 3
/// (red, green, blue). Throws UsageError if the sizes do not match, and in a build without libpng. Needs no LibTorch.
std::string encode_png(std::span<const std::uint8_t> pixels, std::size_t width, std::size_t height, int channels);

}  // namespace hortator::formats
