#include <ATen/ATen.h>

#include <hortator/datasets/image_transforms.hpp>
#include <hortator/error.hpp>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "data/images/image_checks.hpp"

namespace hortator::vision {

SampleRandom::SampleRandom(std::uint64_t seed, std::int64_t epoch, std::int64_t sample)
    : key_(core::mix(core::mix(core::mix(0, seed), static_cast<std::uint64_t>(epoch)),
                     static_cast<std::uint64_t>(sample))) {}

std::uint64_t SampleRandom::next() { return core::mix(key_, core::mix(0, counter_++)); }

double SampleRandom::uniform(double low, double high) {
  constexpr double steps = 1ULL << 53;
  return low + (high - low) * (static_cast<double>(next() >> 11) / steps);
}

std::int64_t SampleRandom::below(std::int64_t end) {
  if (end < 1) throw UsageError({.what = text::concat("There is no whole number from 0 to ", end - 1)});
  return static_cast<std::int64_t>(core::high_product(next(), static_cast<std::uint64_t>(end)));
}

Transform normalise(std::vector<double> mean, std::vector<double> deviation) {
  if (mean.empty() || mean.size() != deviation.size())
    throw UsageError(
        {.what = text::concat("normalise: got ", mean.size(), " means and ", deviation.size(), " deviations"),
         .hint = "give one of each for each channel"});
  const auto column = [](const std::vector<double>& values) { return at::tensor(values, at::kFloat).view({-1, 1, 1}); };
  return [mean = column(mean), deviation = column(deviation)](const at::Tensor& image, SampleRandom&) {
    require_image(image);
    if (mean.size(0) != 1 && mean.size(0) != image.size(0))
      throw UsageError(
          {.what = text::concat("normalise: ", mean.size(0), " means for an image of ", image.size(0), " channels")});
    return (image - mean) / deviation;
  };
}

Transform normalise_imagenet() { return normalise({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}); }

Pipeline::Pipeline(std::vector<Transform> steps, std::uint64_t seed)
    : steps_(std::move(steps)), seed_(seed), epoch_(std::make_shared<std::atomic<std::int64_t>>(0)) {}

at::Tensor Pipeline::operator()(const at::Tensor& image, std::int64_t sample) const {
  SampleRandom random(seed_, epoch_->load(), sample);
  auto changed = image;
  for (const auto& step : steps_) changed = step(changed, random);
  return changed;
}

}  // namespace hortator::vision
