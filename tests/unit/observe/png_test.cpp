
#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "formats/image/image.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

// Long runs of one value, and noise between them.
std::vector<std::uint8_t> drawing(std::size_t bytes) {
  std::vector<std::uint8_t> pixels(bytes, 255);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (i % 700 < 90) pixels[i] = static_cast<std::uint8_t>(i * 37);
  }
  return pixels;
}

}  // namespace

TEST_CASE("a PNG file that was written decodes to the same pixels") {
  struct Size {
    std::size_t width, height;
    int channels;
  };
  for (const auto& [width, height, channels] :
       {Size{1, 1, 3}, Size{1, 1, 1}, Size{7, 3, 3}, Size{640, 300, 3}, Size{513, 200, 1}, Size{3, 1000, 3}}) {
    const auto bytes = width * height * static_cast<std::size_t>(channels);
    const auto random = at::randint(0, 256, {static_cast<std::int64_t>(bytes)}, at::kByte);
    const auto* noise = random.const_data_ptr<std::uint8_t>();
    for (const auto& pixels :
         {drawing(bytes), std::vector<std::uint8_t>(bytes, 0), std::vector<std::uint8_t>(noise, noise + bytes)}) {
      const auto file = formats::encode_png(pixels, width, height, channels);
      const auto image =
          formats::decode_png({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, channels);
      CHECK(image.sizes() ==
            at::IntArrayRef{static_cast<std::int64_t>(height), static_cast<std::int64_t>(width), channels});
      const auto flat = image.contiguous().flatten();
      REQUIRE(flat.numel() == static_cast<std::int64_t>(bytes));
      CHECK(std::equal(pixels.begin(), pixels.end(), flat.const_data_ptr<std::uint8_t>()));
    }
  }
}

TEST_CASE("drawings compress, and sizes that do not match are refused") {
  const std::vector<std::uint8_t> white(900 * 600 * 3, 255);
  CHECK(formats::encode_png(white, 900, 600, 3).size() < 20000);
  CHECK_THROWS_WITH(formats::encode_png(white, 900, 601, 3),
                    ContainsSubstring("do not match an image of 900 x 601 pixels"));
  CHECK_THROWS_AS(formats::encode_png({}, 0, 0, 3), UsageError);
  CHECK_THROWS_AS(formats::encode_png(white, 900, 450, 4), UsageError);
  const std::vector<std::uint8_t> wide(1'000'001, 0);
  CHECK_THROWS_AS(formats::encode_png(wide, wide.size(), 1, 1), UsageError);
}
