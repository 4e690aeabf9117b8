#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace hortator::formats {

/// Why bytes are not a valid image. The caller adds the name of the file.
class ImageFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Decodes a PNG or JPEG file: uint8 [height, width, channels]. One channel is grey, three are red, green, blue.
/// Colours are converted, transparency is dropped, and 16 bits become 8. Throws ImageFault.
at::Tensor decode_image(std::span<const std::uint8_t> file, int channels);

/// The decoders of each format. In a build without its library they throw UsageError.
at::Tensor decode_png(std::span<const std::uint8_t> file, int channels);
at::Tensor decode_jpeg(std::span<const std::uint8_t> file, int channels);

/// Returns an uninitialised image for a decoder to fill. Throws ImageFault for impossible sizes.
at::Tensor make_image(std::int64_t height, std::int64_t width, int channels);

/// Returns the contents of a PNG file. `pixels` holds rows from the top, each pixel `channels` bytes: 1 (grey) or 3
/// (red, green, blue). Throws UsageError if the sizes do not match, and in a build without libpng.
std::string encode_png(std::span<const std::uint8_t> pixels, std::size_t width, std::size_t height, int channels);

}  // namespace hortator::formats
