#include "formats/image/image.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

constexpr std::array<std::uint8_t, 8> png_signature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::array<std::uint8_t, 3> jpeg_signature = {0xff, 0xd8, 0xff};

template <std::size_t size>
bool begins_with(std::span<const std::uint8_t> file, const std::array<std::uint8_t, size>& signature) {
  return file.size() >= size && std::equal(signature.begin(), signature.end(), file.begin());
}

}  // namespace

at::Tensor make_image(std::int64_t height, std::int64_t width, int channels) {
  constexpr std::int64_t max_pixels = std::int64_t{1} << 28;  // a damaged header may claim any size
  if (height < 1 || width < 1 || height > max_pixels / width)
    throw ImageFault(text::concat("it claims to be ", width, " by ", height, " pixels"));
  return at::empty({height, width, channels}, at::kByte);
}

at::Tensor decode_image(std::span<const std::uint8_t> file, int channels) {
  if (begins_with(file, png_signature)) return decode_png(file, channels);
  if (begins_with(file, jpeg_signature)) return decode_jpeg(file, channels);
  throw ImageFault(file.empty() ? "it is empty" : "it does not begin like a PNG or JPEG file");
}

}  // namespace hortator::formats
