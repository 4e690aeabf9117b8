#include <png.h>

#include <ATen/ATen.h>

#include "formats/image/image.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

using Bytes = std::vector<std::uint8_t>;

struct Kind {
  int colour = PNG_COLOR_TYPE_RGB;
  int depth = 8;
  int interlace = PNG_INTERLACE_NONE;
};

void append(png_structp png, png_bytep data, std::size_t count) {
  auto& file = *static_cast<Bytes*>(png_get_io_ptr(png));
  file.insert(file.end(), data, data + count);
}

/// An image of 2 by 2 pixels.
Bytes encode(const Kind& kind, std::vector<Bytes> rows) {
  Bytes file;
  auto* png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  auto* info = png_create_info_struct(png);
  png_set_write_fn(png, &file, append, nullptr);
  png_set_IHDR(png, info, 2, 2, kind.depth, kind.colour, kind.interlace, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  const png_color palette[] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {9, 9, 9}};
  if (kind.colour == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 4);
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  for (auto& row : rows) pointers.push_back(row.data());
  png_set_interlace_handling(png);
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

const std::vector<Bytes> colours = {{10, 20, 30, 40, 50, 60}, {70, 80, 90, 100, 110, 120}};

at::Tensor image_of(const Bytes& values, std::int64_t channels) {
  return at::tensor(at::ArrayRef<std::uint8_t>(values), at::kByte).view({2, 2, channels});
}

}  // namespace

TEST_CASE("PNG images of every colour type decode to RGB") {
  const auto expected = image_of({10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120}, 3);
  CHECK(at::equal(formats::decode_image(encode({}, colours), 3), expected));
  CHECK(at::equal(formats::decode_image(encode({.interlace = PNG_INTERLACE_ADAM7}, colours), 3), expected));
  // 16 bits, big-endian
  const Bytes deep_row = {10, 10, 20, 20, 30, 30, 40, 40, 50, 50, 60, 60};
  const auto deep = formats::decode_image(encode({.depth = 16}, {deep_row, deep_row}), 3);
  CHECK(at::equal(deep, image_of({10, 20, 30, 40, 50, 60, 10, 20, 30, 40, 50, 60}, 3)));
  // with transparency, which is dropped
  const std::vector<Bytes> with_alpha = {{10, 20, 30, 0, 40, 50, 60, 128}, {70, 80, 90, 255, 100, 110, 120, 1}};
  CHECK(at::equal(formats::decode_image(encode({.colour = PNG_COLOR_TYPE_RGB_ALPHA}, with_alpha), 3), expected));
  const auto grey = formats::decode_image(encode({.colour = PNG_COLOR_TYPE_GRAY}, {{1, 2}, {3, 4}}), 3);
  CHECK(at::equal(grey, image_of({1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}, 3)));
  const auto grey_alpha =
      formats::decode_image(encode({.colour = PNG_COLOR_TYPE_GRAY_ALPHA}, {{1, 0, 2, 9}, {3, 9, 4, 9}}), 3);
  CHECK(at::equal(grey_alpha, grey));
  // a palette of four colours, two bits each
  const auto painted =
      formats::decode_image(encode({.colour = PNG_COLOR_TYPE_PALETTE, .depth = 2}, {{0x10}, {0xb0}}), 3);
  CHECK(at::equal(painted, image_of({255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9}, 3)));
  // black and white
  const auto drawn = formats::decode_image(encode({.colour = PNG_COLOR_TYPE_GRAY, .depth = 1}, {{0x40}, {0x80}}), 1);
  CHECK(at::equal(drawn, image_of({0, 255, 255, 0}, 1)));
}

TEST_CASE("PNG images decode to grey on request") {
  CHECK(at::equal(formats::decode_image(encode({.colour = PNG_COLOR_TYPE_GRAY}, {{1, 2}, {3, 4}}), 1),
                  image_of({1, 2, 3, 4}, 1)));
  const std::vector<Bytes> white = {{255, 255, 255, 255, 255, 255}, {0, 0, 0, 255, 255, 255}};
  CHECK(at::equal(formats::decode_image(encode({}, white), 1), image_of({255, 255, 0, 255}, 1)));
}

TEST_CASE("a PNG file truncated or damaged anywhere is refused") {
  const auto whole = encode({}, colours);
  for (std::size_t size = 8; size < whole.size() - 4; ++size) {
    INFO(size);
    CHECK_THROWS_AS(formats::decode_image(std::span(whole).first(size), 3), formats::ImageFault);
  }
  // The checksum of its chunk detects a changed byte.
  for (std::size_t at = 16; at < whole.size() - 12; ++at) {
    auto damaged = whole;
    damaged[at] ^= 0x55;
    INFO(at);
    CHECK_THROWS_AS(formats::decode_image(damaged, 3), formats::ImageFault);
  }
}
