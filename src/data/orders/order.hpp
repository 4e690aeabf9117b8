#pragma once

#include <cstdint>
#include <functional>
#include <hortator/datasets/sampler.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// The orders that loaders choose themselves, and what all orders share. Each order of the public header has its own
/// file.
namespace hortator::data {

/// 0, 1, 2, ...
std::shared_ptr<const Sampler> sequential_sampler();

/// Shuffles by a keyed bijection: every position is computed independently, so an epoch of any length uses no memory.
std::shared_ptr<const Sampler> counter_sampler();

/// torch.randperm with a CPU generator seeded by `seed + epoch`: gives the same order as the seedable sampler of
/// Hugging Face Accelerate. Uses 8 bytes a sample.
std::shared_ptr<const Sampler> randperm_sampler();

using EpochSize = std::function<std::int64_t(std::int64_t dataset_size)>;
using MakeOrder = std::function<std::unique_ptr<const Order>(const EpochKey& epoch)>;

/// A sampler made of its parts; std::identity as `epoch_size` gives an epoch a position for each sample.
std::shared_ptr<const Sampler> make_sampler(std::string name, EpochSize epoch_size, MakeOrder make_order);

/// The order given by a function of the position.
std::unique_ptr<const Order> order_of(std::function<std::int64_t(std::int64_t position)> sample_at);

/// The order given by a list.
std::unique_ptr<const Order> listed_order(std::vector<std::int64_t> samples);

/// The start of the random numbers of one epoch, different for each `purpose`.
std::uint64_t draws_of(const EpochKey& epoch, std::uint64_t purpose);

/// Throws UsageError unless `count`, the number of `what` (weights, lengths), is the number of samples.
void require_one_each(std::string_view what, std::size_t count, std::int64_t dataset_size);

}  // namespace hortator::data
