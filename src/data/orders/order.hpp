#pragma once

#include <cstdint>
#include <hortator/datasets/sampler.hpp>
#include <memory>
#include <vector>

#include "data/sharding/batch_shard.hpp"

/// The built-in orders of loaders, and functions that all orders share. Each order has its own file in orders/.
namespace hortator::data {

/// 0, 1, 2, ...
std::shared_ptr<const Sampler> sequential_sampler();

/// Shuffles by a keyed bijection: every position is computed independently, so an epoch of any length uses no memory.
std::shared_ptr<const Sampler> counter_sampler();

/// torch.randperm with a CPU generator seeded by `seed + epoch`: gives the same order as the seedable sampler of
/// Hugging Face Accelerate. Uses 8 bytes a sample.
std::shared_ptr<const Sampler> randperm_sampler();

/// The order given by a list.
std::unique_ptr<const Order> listed_order(std::vector<std::int64_t> samples);

/// The samples at these positions. Throws UsageError for a sample that the data set does not have.
std::vector<std::int64_t> samples_at(const Order& order, const Positions& positions, std::int64_t dataset_size);

/// The start of the random numbers of one epoch, different for each `purpose`.
std::uint64_t draws_of(const EpochKey& epoch, std::uint64_t purpose);

/// Throws UsageError unless `count`, the number of `what` (weights, lengths), is the number of samples.
void require_one_each(std::string_view what, std::size_t count, std::int64_t dataset_size);

}  // namespace hortator::data
