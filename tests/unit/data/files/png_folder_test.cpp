#include <png.h>

#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

void draw(const std::string& path, png_uint_32 side, std::uint8_t brightness) {
  write(path, "");
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = side;
  image.height = side;
  image.format = PNG_FORMAT_RGB;
  const std::vector<std::uint8_t> pixels(std::size_t{3} * side * side, brightness);
  REQUIRE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr) != 0);
}

}  // namespace

TEST_CASE("images come as numbers from 0 to 1 with the number of their class") {
  std::filesystem::remove_all("image_folder");
  draw("image_folder/a/1.png", 4, 255);
  draw("image_folder/b/1.png", 4, 0);
  draw("image_folder/b/2.png", 6, 51);
  const ImageFolder folder("image_folder");
  const auto sample = folder.get(2);
  CHECK(sample.data.sizes() == at::IntArrayRef({3, 6, 6}));
  CHECK(sample.data.is_contiguous());
  CHECK(sample.data.max().item<float>() == Approx(0.2));
  CHECK(sample.target == 1);
  CHECK(ImageFolder("image_folder", {.channels = 1}).get(0).data.sizes() == at::IntArrayRef({1, 4, 4}));

  const auto loop = [](const ImageFolder& images) {
    std::vector<std::int64_t> labels;
    auto loader = data_loader(images, {.batch_size = 3});
    for (auto& batch : loader) {
      CHECK(batch.data.sizes() == at::IntArrayRef({3, 3, 2, 2}));
      for (std::int64_t i = 0; i < 3; ++i) labels.push_back(batch.target[i].item<std::int64_t>());
    }
    return labels;
  };
  CHECK_THROWS_WITH(loop(folder), ContainsSubstring("could not be joined"));
  const ImageFolder cropped(
      "image_folder", {.transform = [](const at::Tensor& image) { return image.narrow(1, 0, 2).narrow(2, 0, 2); }});
  CHECK(loop(cropped) == std::vector<std::int64_t>{0, 1, 1});
}
