#include "formats/image/png_encoder.hpp"

#include <png.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

void check_pixels(std::size_t bytes, std::size_t width, std::size_t height, int channels) {
  constexpr std::size_t max_side = 1'000'000;  // libpng's own limit
  const bool has_size = width > 0 && height > 0 && width <= max_side && height <= max_side;
  const bool is_known = channels == 1 || channels == 3;
  if (has_size && is_known && bytes == width * height * static_cast<std::size_t>(channels)) return;
  throw UsageError(
      {.what = text::concat(text::count(static_cast<long long>(bytes), "byte"), " do not match an image of ", width,
                            " x ", height, " pixels with ", channels, " channels"),
       .hint = "pass 1 or 3 bytes a pixel, and at most 1000000 rows and columns"});
}

}  // namespace

std::string encode_png(std::span<const std::uint8_t> pixels, std::size_t width, std::size_t height, int channels) {
  check_pixels(pixels.size(), width, height, channels);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  constexpr int keep_depth = 0;
  constexpr png_int_32 rows_are_adjacent = 0;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(bytes, '\0');
  if (png_image_write_to_memory(&image, file.data(), &bytes, keep_depth, pixels.data(), rows_are_adjacent, nullptr) ==
      0)
    throw UsageError({.what = text::concat("libpng could not encode an image of ", width, " x ", height, " pixels"),
                      .why = image.message});
  file.resize(bytes);
  return file;
}

}  // namespace hortator::formats
