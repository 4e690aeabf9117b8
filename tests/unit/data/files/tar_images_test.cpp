// Images in tar shards.
#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "formats/image/image.hpp"
#include "support/catch.hpp"
#include "tar_bytes.hpp"

using namespace hortator;
using namespace hortator::data_test;

TEST_CASE("images in shards have the classes of their cls files") {
  const std::vector<std::uint8_t> pixels = {0, 255, 51};
  const auto png = formats::encode_png(pixels, 1, 1, 3);
  const TarImages images(TarShards({write("a.tar", tar({{"1.png", png},
                                                        {"1.cls", "4\n"},
                                                        {"2.cls", "1"},
                                                        {"3.png", png},
                                                        {"3.cls", "cat"},
                                                        {"4.png", "x"},
                                                        {"4.cls", "1"}}))}));
  REQUIRE(images.size() == 4);
  const auto one = images.get(0);
  CHECK(one.target == 4);
  CHECK(at::allclose(one.data, at::tensor({0.0F, 1.0F, 0.2F}).reshape({3, 1, 1})));
  CHECK_THROWS_WITH(images.get(1), ContainsSubstring("the sample '2' of") && ContainsSubstring("a.tar") &&
                                       ContainsSubstring("has no image"));
  CHECK_THROWS_WITH(images.get(2), ContainsSubstring("a.tar") && ContainsSubstring("has the class 'cat'"));
  CHECK_THROWS_WITH(images.get(3), ContainsSubstring("the image of the sample '4' of") && ContainsSubstring("a.tar"));
  CHECK_THROWS_AS(TarImages(TarShards({write("a.tar", tar({{"1.png", png}}))}), {.channels = 2}), UsageError);
}
