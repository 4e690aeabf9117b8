// Fuzzes the decoding of PNG and JPEG files: any bytes are refused, or are an image of the size that they claim.
#include <cstdint>
#include <span>

#include "formats/image/image.hpp"
#include "target.hpp"

using namespace hortator;

FUZZ_TARGET(image_file) {
  for (const int channels : {1, 3}) {
    try {
      const auto image = formats::decode_image(std::span(data, size), channels);
      if (image.dim() != 3 || image.numel() == 0 || image.size(2) != channels) __builtin_trap();
    } catch (const formats::ImageFault&) {
    }
  }
  return 0;
}
