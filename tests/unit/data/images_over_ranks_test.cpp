// Random transforms of images are those of the sample, on any number of ranks and with any number of readers.
#include <ATen/ATen.h>

#include <hortator/hortator.hpp>

#include "support/catch.hpp"

using namespace hortator;

namespace {

/// Image i, with label i.
struct Pictures {
  std::int64_t count;
  std::int64_t size() const { return count; }
  torch::data::Example<at::Tensor, std::int64_t> get(std::int64_t i) const {
    const auto pixels = at::arange(3 * 8 * 10, at::kFloat).view({3, 8, 10});
    return {(pixels * static_cast<double>(i + 1)).remainder(97) / 97, i};
  }
};

vision::Pipeline pipeline() {
  return vision::Pipeline({vision::random_resized_crop(6), vision::random_horizontal_flip(),
                           vision::color_jitter({.brightness = 0.3, .contrast = 0.3, .saturation = 0.3, .hue = 0.1})},
                          11);
}

}  // namespace

TEST_CASE("random transforms of images depend on seed, epoch and sample, not on ranks and readers") {
  constexpr std::int64_t count = 21;
  const auto plain = pipeline();
  for (const int workers : {0, 1, 3}) {
    INFO(workers << " readers");
    auto steps = pipeline();
    Accelerator accelerator;
    auto loader = accelerator.prepare(
        data_loader(vision::transformed(Pictures{count}, steps),
                    {.batch_size = 2, .shuffle = true, .prefetch = workers, .workers = std::max(workers, 1)}));
    at::Tensor first_epoch;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      steps.set_epoch(epoch);
      plain.set_epoch(epoch);
      std::vector<at::Tensor> seen;
      std::int64_t samples = 0;
      for (auto& batch : loader) {
        const auto [all_images, labels] = accelerator.gather_for_metrics(batch.data, batch.target);
        for (std::int64_t row = 0; row < labels.size(0); ++row) {
          const auto sample = labels[row].item<std::int64_t>();
          const auto expected = plain(Pictures{count}.get(sample).data, sample);
          CHECK(at::equal(all_images[row], expected));
          if (sample == 4) seen.push_back(expected);
          ++samples;
        }
      }
      CHECK(samples == count);
      REQUIRE(seen.size() == 1);
      if (epoch == 0) first_epoch = seen.front();
      if (epoch == 1) CHECK_FALSE(at::equal(first_epoch, seen.front()));
    }
  }
}
