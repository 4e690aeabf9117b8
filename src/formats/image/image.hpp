#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <stdexcept>

namespace hortator::formats {

/// Why bytes are no image; the caller knows which file they are of.
class ImageFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The picture in a PNG or JPEG file: uint8 [height, width, channels]. One channel is grey, three are red, green, blue;
/// what the file has is converted, transparency left out, 16 bits made 8. Throws ImageFault.
at::Tensor decode_image(std::span<const std::uint8_t> file, int channels);

/// For each kind of file; a build without its library has a stand-in that throws UsageError.
at::Tensor decode_png(std::span<const std::uint8_t> file, int channels);
at::Tensor decode_jpeg(std::span<const std::uint8_t> file, int channels);

/// uninitialised, for a decoder to fill; throws ImageFault for sizes that no picture has
at::Tensor make_image(std::int64_t height, std::int64_t width, int channels);

}  // namespace hortator::formats
