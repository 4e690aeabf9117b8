#include <ATen/ATen.h>

#include <cstdio>
#include <cstdlib>

// jpeglib.h needs FILE
#include <jpeglib.h>

#include "formats/image/image.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// An image of 16 by 16 pixels of one colour.
Bytes encode(J_COLOR_SPACE space, const Bytes& pixel) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* file = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &file, &size);
  jpeg.image_width = 16;
  jpeg.image_height = 16;
  jpeg.input_components = static_cast<int>(pixel.size());
  jpeg.in_color_space = space;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  Bytes row;
  for (int i = 0; i < 16; ++i) row.insert(row.end(), pixel.begin(), pixel.end());
  auto* line = row.data();
  while (jpeg.next_scanline < jpeg.image_height) jpeg_write_scanlines(&jpeg, &line, 1);
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Bytes bytes(file, file + size);
  std::free(file);
  return bytes;
}

bool is_near(const at::Tensor& image, const std::vector<std::int64_t>& pixel) {
  const auto expected = at::tensor(pixel, at::kLong);
  return image.sizes() == at::IntArrayRef({16, 16, static_cast<std::int64_t>(pixel.size())}) &&
         (image.to(at::kLong) - expected).abs().max().item<int>() <= 2;
}

}  // namespace

TEST_CASE("JPEG images decode to RGB or grey") {
  const auto colour = encode(JCS_RGB, {200, 100, 50});
  CHECK(is_near(formats::decode_image(colour, 3), {200, 100, 50}));
  CHECK(is_near(formats::decode_image(colour, 1), {124}));
  const auto grey = encode(JCS_GRAYSCALE, {77});
  CHECK(is_near(formats::decode_image(grey, 3), {77, 77, 77}));
  CHECK(is_near(formats::decode_image(grey, 1), {77}));
}

TEST_CASE("CMYK images are refused") {
  CHECK_THROWS_WITH(formats::decode_image(encode(JCS_CMYK, {1, 2, 3, 4}), 3), ContainsSubstring("CMYK"));
}

TEST_CASE("a JPEG file truncated anywhere is refused") {
  const auto whole = encode(JCS_RGB, {200, 100, 50});
  for (std::size_t size = 3; size < whole.size() - 2; ++size) {
    INFO(size);
    CHECK_THROWS_AS(formats::decode_image(std::span(whole).first(size), 3), formats::ImageFault);
  }
}
