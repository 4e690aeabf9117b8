#pragma once

#include <cstdint>
#include <hortator/datasets/sampler.hpp>
#include <memory>
#include <vector>

#include "data/sharding/batch_shard.hpp"

/// The orders that loaders have by themselves, and what all orders share. Each kind is a file in orders/.
namespace hortator::data {

/// 0, 1, 2, ...
std::shared_ptr<const Sampler> sequential_sampler();

/// Shuffled by a keyed bijection: every position is computed by itself, so an epoch of any length takes no memory.
std::shared_ptr<const Sampler> counter_sampler();

/// torch.randperm by a CPU generator with the seed `seed + epoch`: the reference's seedable sampler, number for number.
/// Holds 8 bytes a sample.
std::shared_ptr<const Sampler> randperm_sampler();

/// Positions as they are listed.
std::unique_ptr<const Order> listed_order(std::vector<std::int64_t> samples);

/// The samples at these positions. Throws UsageError for one that the data set does not have.
std::vector<std::int64_t> samples_at(const Order& order, const Positions& positions, std::int64_t dataset_size);

/// From where the draws of one epoch start, another place for each `purpose`.
std::uint64_t draws_of(const EpochKey& epoch, std::uint64_t purpose);

/// Throws UsageError unless there is one of `what` (weights, lengths) for each sample.
void require_one_each(std::string_view what, std::size_t count, std::int64_t dataset_size);

}  // namespace hortator::data
