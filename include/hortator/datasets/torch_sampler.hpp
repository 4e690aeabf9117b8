#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <hortator/datasets/sampler.hpp>
#include <hortator/detail/batch_source.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace torch::data::samplers {
template <typename BatchRequest>
class DistributedSampler;
}

namespace hortator {

namespace detail {

/// A sampler of torch::data that returns the numbers of the next samples.
template <typename S>
concept TorchSampler = requires(S& sampler, std::optional<std::size_t> size, std::size_t count) {
  sampler.reset(size);
  { sampler.next(count) } -> std::same_as<std::optional<std::vector<std::size_t>>>;
};
template <typename S>
inline constexpr bool is_distributed =
    std::derived_from<S, torch::data::samplers::DistributedSampler<std::vector<std::size_t>>>;

template <TorchSampler S>
std::vector<std::int64_t> drawn_by(S& sampler, const EpochKey& epoch) {
  constexpr std::size_t max_count = 4096;
  std::vector<std::int64_t> samples;
  data::with_seed(epoch.seed + static_cast<std::uint64_t>(epoch.epoch), [&] {
    sampler.reset(std::nullopt);
    while (const auto some = sampler.next(max_count)) samples.insert(samples.end(), some->begin(), some->end());
  });
  return samples;
}

}  // namespace detail

/// The order of a torch::data sampler, or of a user's sampler with the same interface, for LoaderOptions::sampler.
/// LibTorch's default generator is seeded by the loader's seed and the epoch while the sampler draws, so that all ranks
/// get the same order. Uses 8 bytes a sample.
template <detail::TorchSampler S>
std::shared_ptr<const Sampler> torch_sampler(S sampler) {
  static_assert(
      !detail::is_distributed<S>,
      "the loader itself distributes samples to ranks: use RandomSampler or SequentialSampler instead of a distributed "
      "sampler of torch::data");
  const auto shared = std::make_shared<S>(std::move(sampler));
  const auto draw = [shared](const EpochKey& epoch) { return detail::drawn_by(*shared, epoch); };
  const auto size = static_cast<std::int64_t>(draw({}).size());
  return custom_sampler("torch::data", draw, {.epoch_size = size});
}

}  // namespace hortator
