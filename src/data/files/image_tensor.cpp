#include "data/files/image_tensor.hpp"

#include <ATen/ATen.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "formats/image/image.hpp"

namespace hortator::data {

void require_channels(int channels) {
  if (channels != 1 && channels != 3)
    throw UsageError({.what = text::concat("images have 1 or 3 channels, not ", channels)});
}

at::Tensor image_tensor(std::span<const std::uint8_t> file, int channels) {
  constexpr double brightest = 255;
  const auto image = formats::decode_image(file, channels);
  return image.permute({2, 0, 1}).to(at::kFloat, false, true, at::MemoryFormat::Contiguous).div_(brightest);
}

}  // namespace hortator::data
