// Transforms of images, against stored results of torchvision (images/oracle.py).
#include <ATen/ATen.h>

#include <cstdlib>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::vision;

namespace {

std::string stored_results() {
  const auto* other = std::getenv("HORTATOR_TORCHVISION_CASES");
  return other != nullptr ? other : TORCHVISION_CASES;
}

at::Tensor applied(const Transform& transform, const at::Tensor& image) {
  SampleRandom random(1, 2, 3);
  return transform(image, random);
}

/// What the result "0.resize.6.6" of an image is by our transforms.
at::Tensor result_of(const std::string& name, const at::Tensor& image) {
  const auto parts = text::split(name, '.');
  const auto& transform = parts.at(1);
  const auto argument = std::stoll(parts.at(2));
  const auto factor = static_cast<double>(argument) / 100;
  if (transform == "resize") return applied(resize(argument, std::stoll(parts.at(3))), image);
  if (transform == "shorter") return applied(resize_shorter_side(argument), image);
  if (transform == "center") return applied(center_crop(argument), image);
  if (transform == "brightness") return adjust_brightness(image, factor);
  if (transform == "contrast") return adjust_contrast(image, factor);
  if (transform == "saturation") return adjust_saturation(image, factor);
  if (transform == "hue") return adjust_hue(image, factor);
  if (transform == "flip") return applied(random_horizontal_flip(1), image);
  REQUIRE(transform == "normalise");
  if (image.size(0) == 3) return applied(normalise_imagenet(), image);
  return applied(normalise({0.485}, {0.229}), image);
}

at::Tensor test_image(std::int64_t height = 9, std::int64_t width = 12) { return at::rand({3, height, width}); }

}  // namespace

TEST_CASE("transforms compute what torchvision computes", "[torchvision]") {
  const SafetensorsFile cases(stored_results());
  std::size_t compared = 0;
  for (const auto& name : cases.names()) {
    if (name.starts_with("input.")) continue;
    INFO(name);
    const auto expected = cases.get(name);
    const auto result = result_of(name, cases.get("input." + name.substr(0, 1)));
    REQUIRE(result.sizes() == expected.sizes());
    CHECK((result - expected).abs().max().item<double>() < 2e-6);
    ++compared;
  }
  CHECK(compared > 60);
}

TEST_CASE("random numbers of a sample depend on seed, epoch and sample only") {
  const auto drawn = [](std::uint64_t seed, std::int64_t epoch, std::int64_t sample) {
    SampleRandom random(seed, epoch, sample);
    return std::vector<double>{random.uniform(), random.uniform(), random.uniform(2, 3)};
  };
  CHECK(drawn(1, 2, 3) == drawn(1, 2, 3));
  for (const auto& other : {drawn(0, 2, 3), drawn(1, 3, 3), drawn(1, 2, 4), drawn(2, 1, 3), drawn(1, 3, 2)})
    CHECK(other != drawn(1, 2, 3));
  double sum = 0;
  std::vector<int> counts(7);
  constexpr int samples = 7000;
  for (int i = 0; i < samples; ++i) {
    SampleRandom random(5, 0, i);
    sum += random.uniform();
    ++counts.at(static_cast<std::size_t>(random.below(7)));
  }
  CHECK(sum / samples == Approx(0.5).margin(0.02));
  for (const auto count : counts) CHECK(std::abs(count - samples / 7) < 150);
}

TEST_CASE("random crops lie within the image, with the area and the proportions that are asked for") {
  const CropOptions options{.scale = {0.2, 0.5}, .ratio = {0.5, 2}};
  double smallest = 1, largest = 0;
  std::int64_t top = 0, bottom = 0;
  for (std::int64_t sample = 0; sample < 500; ++sample) {
    SampleRandom random(0, 0, sample);
    const auto box = random_crop_box(200, 300, options, random);
    CHECK((box.top >= 0 && box.left >= 0 && box.top + box.height <= 200 && box.left + box.width <= 300));
    const auto area = static_cast<double>(box.height * box.width) / (200 * 300);
    const auto ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    CHECK((area > 0.19 && area < 0.51 && ratio > 0.48 && ratio < 2.1));
    smallest = std::min(smallest, area), largest = std::max(largest, area);
    top += box.top < 20 ? 1 : 0, bottom += box.top + box.height > 180 ? 1 : 0;
  }
  CHECK((smallest < 0.22 && largest > 0.48));
  CHECK((top > 20 && bottom > 20));
  // No crop of the whole area fits into a very wide image: the middle is taken, as wide as the proportions allow.
  SampleRandom random(0, 0, 0);
  const auto middle = random_crop_box(10, 100, {.scale = {1, 1}, .ratio = {0.75, 1.5}}, random);
  CHECK((middle.height == 10 && middle.width == 15 && middle.left == 42 && middle.top == 0));
}

TEST_CASE("flips happen as often as their probability") {
  const auto image = test_image();
  int flipped = 0;
  for (std::int64_t sample = 0; sample < 400; ++sample) {
    SampleRandom random(0, 0, sample);
    const auto result = random_horizontal_flip(0.25)(image, random);
    const bool is_flipped = at::equal(result, image.flip(2));
    CHECK((is_flipped || at::equal(result, image)));
    flipped += is_flipped ? 1 : 0;
  }
  CHECK((flipped > 60 && flipped < 140));
}

TEST_CASE("colour jitter stays within its limits and varies") {
  const auto image = test_image();
  const auto jitter = color_jitter({.brightness = 0.2});
  std::vector<double> factors;
  for (std::int64_t sample = 0; sample < 50; ++sample) {
    SampleRandom random(0, 0, sample);
    const auto small = image * 0.5;
    factors.push_back((jitter(small, random).sum() / small.sum()).item<double>());
    CHECK((factors.back() > 0.799 && factors.back() < 1.201));
  }
  CHECK(*std::ranges::max_element(factors) - *std::ranges::min_element(factors) > 0.3);
  CHECK(at::equal(applied(color_jitter({}), image), image));
  const auto all = applied(color_jitter({.brightness = 0.5, .contrast = 0.5, .saturation = 0.5, .hue = 0.5}), image);
  CHECK((all.min().item<double>() >= 0 && all.max().item<double>() <= 1.00001));
}

TEST_CASE("transforms refuse what they cannot use") {
  CHECK_THROWS_WITH(applied(resize(4, 4), at::zeros({2, 4, 4})), ContainsSubstring("[2, 4, 4]"));
  CHECK_THROWS_WITH(applied(resize(4, 4), at::zeros({3, 4, 4}, at::kByte)), ContainsSubstring("float32"));
  CHECK_THROWS_WITH(resize(0, 4), ContainsSubstring("expected a size from 1, got 0"));
  CHECK_THROWS_WITH(applied(center_crop(10), test_image()), ContainsSubstring("9 x 12 has no square of 10"));
  CHECK_THROWS_WITH(random_resized_crop(4, {.scale = {0, 1}}), ContainsSubstring("scale"));
  CHECK_THROWS_WITH(random_horizontal_flip(1.5), ContainsSubstring("probability"));
  CHECK_THROWS_WITH(color_jitter({.hue = 0.6}), ContainsSubstring("0.5"));
  CHECK_THROWS_WITH(color_jitter({.contrast = -1}), ContainsSubstring("from 0"));
  CHECK_THROWS_WITH(normalise({0.5, 0.5}, {1}), ContainsSubstring("2 means and 1 deviations"));
  CHECK_THROWS_WITH(applied(normalise({0.5, 0.5}, {1, 1}), test_image()),
                    ContainsSubstring("2 means for an image of 3"));
}
