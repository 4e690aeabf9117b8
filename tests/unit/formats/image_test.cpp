#include "formats/image/image.hpp"

#include <ATen/ATen.h>

#include <fstream>

#include "support/catch.hpp"

using namespace hortator;

namespace {

std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

TEST_CASE("files that are neither PNG nor JPEG are refused") {
  CHECK_THROWS_WITH(formats::decode_image(bytes(""), 3), ContainsSubstring("empty"));
  CHECK_THROWS_WITH(formats::decode_image(bytes("GIF89a..."), 3), ContainsSubstring("does not begin like"));
  CHECK_THROWS_WITH(formats::decode_image(bytes("\x89PN"), 3), ContainsSubstring("does not begin like"));
}

TEST_CASE("impossible sizes are refused before memory is allocated") {
  CHECK_THROWS_WITH(formats::make_image(1 << 20, 1 << 20, 3), ContainsSubstring("1048576 by 1048576"));
  CHECK_THROWS_AS(formats::make_image(0, 5, 3), formats::ImageFault);
  CHECK(formats::make_image(2, 5, 3).sizes() == at::IntArrayRef({2, 5, 3}));
}
