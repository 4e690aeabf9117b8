#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <hortator/export.hpp>
#include <memory>
#include <utility>
#include <vector>

/// Transforms of images, float32 [channels, height, width] from 0 to 1: torchvision's, computed the same way.
namespace hortator::vision {

/// Random numbers that depend on (seed, epoch, sample) only, not on the rank or thread that reads the sample.
class HORTATOR_API SampleRandom {
 public:
  SampleRandom(std::uint64_t seed, std::int64_t epoch, std::int64_t sample);

  double uniform(double low = 0, double high = 1);  ///< from low, below high
  std::int64_t below(std::int64_t end);             ///< a whole number from 0 to end - 1

 private:
  std::uint64_t next();

  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

/// A step of a pipeline. Must be safe for several threads.
using Transform = std::function<at::Tensor(const at::Tensor& image, SampleRandom& random)>;

/// To this height and width, bilinear with antialiasing.
HORTATOR_API Transform resize(std::int64_t height, std::int64_t width);
/// So that the shorter side has that length, and the proportions stay.
HORTATOR_API Transform resize_shorter_side(std::int64_t length);
/// The square in the middle. The image must be large enough.
HORTATOR_API Transform center_crop(std::int64_t length);

/// Options of random_resized_crop.
struct CropOptions {
  std::pair<double, double> scale = {0.08, 1.0};             ///< area of the crop, as a part of the image's
  std::pair<double, double> ratio = {3.0 / 4.0, 4.0 / 3.0};  ///< its width by its height
};
/// A random part of the image, resized to a square.
HORTATOR_API Transform random_resized_crop(std::int64_t length, const CropOptions& options = {});
/// Left becomes right, with this probability.
HORTATOR_API Transform random_horizontal_flip(double probability = 0.5);
/// (image - mean) / deviation, for each channel.
HORTATOR_API Transform normalise(std::vector<double> mean, std::vector<double> deviation);
/// normalise() with the mean and deviation of ImageNet, which pretrained models expect.
HORTATOR_API Transform normalise_imagenet();

/// Options of color_jitter: factors lie within 1 - x and 1 + x; hue is added, within -x and x, at most 0.5.
struct JitterOptions {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};
/// Random brightness, contrast, saturation and hue, in random order.
HORTATOR_API Transform color_jitter(const JitterOptions& options);

// What the transforms above compute, without random numbers.
HORTATOR_API at::Tensor resized(const at::Tensor& image, std::int64_t height, std::int64_t width);
HORTATOR_API at::Tensor adjust_brightness(const at::Tensor& image, double factor);
HORTATOR_API at::Tensor adjust_contrast(const at::Tensor& image, double factor);
HORTATOR_API at::Tensor adjust_saturation(const at::Tensor& image, double factor);
HORTATOR_API at::Tensor adjust_hue(const at::Tensor& image, double shift);  ///< `shift` of a whole turn

/// A rectangle in an image.
struct CropBox {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};
/// The part that random_resized_crop takes of an image.
HORTATOR_API CropBox random_crop_box(std::int64_t height, std::int64_t width, const CropOptions& options,
                                     SampleRandom& random);

/// Transforms one after the other. Copies share the epoch.
class HORTATOR_API Pipeline {
 public:
  explicit Pipeline(std::vector<Transform> steps, std::uint64_t seed = 0);

  /// Set it before each pass, so that each pass draws other random numbers: pipeline.set_epoch(loader.epoch()).
  void set_epoch(std::int64_t epoch) const { epoch_->store(epoch); }
  at::Tensor operator()(const at::Tensor& image, std::int64_t sample) const;

 private:
  std::vector<Transform> steps_;
  std::uint64_t seed_;
  std::shared_ptr<std::atomic<std::int64_t>> epoch_;
};

/// A data set of (image, label) examples with the images transformed.
template <typename Dataset>
class Transformed {
 public:
  Transformed(Dataset dataset, Pipeline pipeline) : dataset_(std::move(dataset)), pipeline_(std::move(pipeline)) {}

  std::int64_t size() const { return static_cast<std::int64_t>(dataset_.size()); }
  auto get(std::int64_t sample) const {
    auto example = dataset_.get(sample);
    example.data = pipeline_(example.data, sample);
    return example;
  }

 private:
  Dataset dataset_;
  Pipeline pipeline_;
};

/// data_loader(vision::transformed(ImageFolder("pets"), pipeline), ...)
template <typename Dataset>
Transformed<Dataset> transformed(Dataset dataset, Pipeline pipeline) {
  return Transformed<Dataset>(std::move(dataset), std::move(pipeline));
}

}  // namespace hortator::vision
