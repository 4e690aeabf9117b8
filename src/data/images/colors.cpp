// Brightness, contrast, saturation and hue.
#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/datasets/image_transforms.hpp>
#include <hortator/error.hpp>

#include "data/images/image_checks.hpp"

namespace hortator::vision {
namespace {

bool has_colors(const at::Tensor& image) { return image.size(0) == 3; }

/// Luma of ITU-R 601, [1, height, width].
at::Tensor grey(const at::Tensor& image) {
  if (!has_colors(image)) return image;
  return (0.2989 * image[0] + 0.587 * image[1] + 0.114 * image[2]).unsqueeze(0);
}

at::Tensor mixed(const at::Tensor& image, const at::Tensor& other, double factor) {
  return (factor * image + (1 - factor) * other).clamp(0, 1);
}

constexpr double sixths = 6;

/// Hue, in parts of a turn, of pixels whose channels span `range`.
at::Tensor hue_of(const at::Tensor& image, const at::Tensor& largest, const at::Tensor& range) {
  const auto red = image[0], green = image[1], blue = image[2];
  const auto sector = at::where(largest.eq(red), (green - blue) / range,
                                at::where(largest.eq(green), 2 + (blue - red) / range, 4 + (red - green) / range));
  return (sector / sixths).remainder(1);
}

/// One channel of the colours with this hue; `offset` is that of the channel in sixths of a turn.
at::Tensor channel(const at::Tensor& hue, const at::Tensor& chroma, const at::Tensor& largest, double offset) {
  const auto turn = (offset + hue * sixths).remainder(sixths);
  return largest - chroma * at::minimum(turn, 4 - turn).clamp(0, 1);
}

/// One of the four changes, and the interval of its factor.
struct Jitter {
  at::Tensor (*change)(const at::Tensor&, double);
  double low, high;
};

std::vector<Jitter> jitters_of(const JitterOptions& options) {
  std::vector<Jitter> jitters;
  const auto add = [&](auto change, double amount) {
    if (amount > 0) jitters.push_back({.change = change, .low = std::max(0.0, 1 - amount), .high = 1 + amount});
  };
  add(adjust_brightness, options.brightness);
  add(adjust_contrast, options.contrast);
  add(adjust_saturation, options.saturation);
  if (options.hue > 0) jitters.push_back({.change = adjust_hue, .low = -options.hue, .high = options.hue});
  return jitters;
}

}  // namespace

at::Tensor adjust_brightness(const at::Tensor& image, double factor) { return (image * factor).clamp(0, 1); }

at::Tensor adjust_contrast(const at::Tensor& image, double factor) { return mixed(image, grey(image).mean(), factor); }

at::Tensor adjust_saturation(const at::Tensor& image, double factor) {
  return has_colors(image) ? mixed(image, grey(image), factor) : image;
}

at::Tensor adjust_hue(const at::Tensor& image, double shift) {
  if (!has_colors(image)) return image;
  const auto largest = image.amax(0), chroma = largest - image.amin(0);
  const auto is_grey = chroma.eq(0);
  const auto hue = (hue_of(image, largest, chroma.masked_fill(is_grey, 1)) + shift).remainder(1);
  return at::stack(
      {channel(hue, chroma, largest, 5), channel(hue, chroma, largest, 3), channel(hue, chroma, largest, 1)});
}

Transform color_jitter(const JitterOptions& options) {
  for (const auto amount : {options.brightness, options.contrast, options.saturation})
    if (!(amount >= 0)) throw UsageError({.what = "color_jitter: expected brightness, contrast and saturation from 0"});
  if (!(options.hue >= 0 && options.hue <= 0.5))
    throw UsageError({.what = "color_jitter: expected a hue from 0 to 0.5"});
  return [jitters = jitters_of(options)](const at::Tensor& image, SampleRandom& random) {
    require_image(image);
    auto order = jitters;
    for (auto left = static_cast<std::int64_t>(order.size()); left > 1; --left)
      std::swap(order[static_cast<std::size_t>(left - 1)], order[static_cast<std::size_t>(random.below(left))]);
    auto changed = image;
    for (const auto& jitter : order) changed = jitter.change(changed, random.uniform(jitter.low, jitter.high));
    return changed;
  };
}

}  // namespace hortator::vision
