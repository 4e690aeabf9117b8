// Sizes, crops and flips.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <hortator/datasets/image_transforms.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "data/images/image_checks.hpp"

namespace hortator::vision {
namespace {

void require_size(std::int64_t size, const char* transform) {
  if (size < 1) throw UsageError({.what = text::concat(transform, ": expected a size from 1, got ", size)});
}

at::Tensor cropped(const at::Tensor& image, const CropBox& box) {
  return image.narrow(1, box.top, box.height).narrow(2, box.left, box.width);
}

/// The largest box in the middle whose proportions are allowed.
CropBox central_box(std::int64_t height, std::int64_t width, const CropOptions& options) {
  const auto ratio = static_cast<double>(width) / static_cast<double>(height);
  CropBox box{.height = height, .width = width};
  if (ratio < options.ratio.first) {
    box.height = std::lrint(static_cast<double>(width) / options.ratio.first);
  } else if (ratio > options.ratio.second) {
    box.width = std::lrint(static_cast<double>(height) * options.ratio.second);
  }
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

bool is_interval(const std::pair<double, double>& range) { return range.first > 0 && range.first <= range.second; }

}  // namespace

void require_image(const at::Tensor& image) {
  const bool fits = image.dim() == 3 && image.scalar_type() == at::kFloat && (image.size(0) == 1 || image.size(0) == 3);
  if (fits) return;
  throw UsageError({.what = text::concat("An image must be float32 [1 or 3, height, width], got ", image.scalar_type(),
                                         " ", image.sizes())});
}

at::Tensor resized(const at::Tensor& image, std::int64_t height, std::int64_t width) {
  require_image(image);
  if (image.size(1) == height && image.size(2) == width) return image;
  return at::_upsample_bilinear2d_aa(image.unsqueeze(0), {height, width}, /*align_corners=*/false).squeeze(0);
}

Transform resize(std::int64_t height, std::int64_t width) {
  require_size(std::min(height, width), "resize");
  return [=](const at::Tensor& image, SampleRandom&) { return resized(image, height, width); };
}

Transform resize_shorter_side(std::int64_t length) {
  require_size(length, "resize_shorter_side");
  return [=](const at::Tensor& image, SampleRandom&) {
    require_image(image);
    const auto height = image.size(1), width = image.size(2);
    if (height <= width) return resized(image, length, length * width / height);
    return resized(image, length * height / width, length);
  };
}

Transform center_crop(std::int64_t length) {
  require_size(length, "center_crop");
  return [=](const at::Tensor& image, SampleRandom&) {
    require_image(image);
    const auto height = image.size(1), width = image.size(2);
    if (std::min(height, width) < length) {
      throw UsageError(
          {.what = text::concat("center_crop: an image of ", height, " x ", width, " has no square of ", length),
           .hint = "resize it first: resize_shorter_side"});
    }
    const auto middle = [&](std::int64_t side) { return std::lrint(static_cast<double>(side - length) / 2); };
    return cropped(image, {.top = middle(height), .left = middle(width), .height = length, .width = length});
  };
}

CropBox random_crop_box(std::int64_t height, std::int64_t width, const CropOptions& options, SampleRandom& random) {
  constexpr int attempts = 10;
  const auto area = static_cast<double>(height * width);
  for (int i = 0; i < attempts; ++i) {
    const auto wanted = area * random.uniform(options.scale.first, options.scale.second);
    const auto ratio = std::exp(random.uniform(std::log(options.ratio.first), std::log(options.ratio.second)));
    CropBox box{.height = std::lrint(std::sqrt(wanted / ratio)), .width = std::lrint(std::sqrt(wanted * ratio))};
    if (box.height < 1 || box.height > height || box.width < 1 || box.width > width) continue;
    box.top = random.below(height - box.height + 1);
    box.left = random.below(width - box.width + 1);
    return box;
  }
  return central_box(height, width, options);
}

Transform random_resized_crop(std::int64_t length, const CropOptions& options) {
  require_size(length, "random_resized_crop");
  if (!is_interval(options.scale) || options.scale.second > 1 || !is_interval(options.ratio)) {
    throw UsageError({.what = "random_resized_crop: expected scale and ratio from a smaller to a larger number above 0",
                      .hint = "scale is a part of the image's area, at most 1"});
  }
  return [=](const at::Tensor& image, SampleRandom& random) {
    require_image(image);
    return resized(cropped(image, random_crop_box(image.size(1), image.size(2), options, random)), length, length);
  };
}

Transform random_horizontal_flip(double probability) {
  if (!(probability >= 0 && probability <= 1))
    throw UsageError({.what = text::concat("random_horizontal_flip: expected a probability, got ", probability)});
  return [=](const at::Tensor& image, SampleRandom& random) {
    require_image(image);
    return random.uniform() < probability ? image.flip(2) : image;
  };
}

}  // namespace hortator::vision
