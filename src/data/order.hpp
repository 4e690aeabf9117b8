#pragma once

#include <cstdint>
#include <memory>

namespace hortator::data {

/// The global order of one epoch: which sample of the data set stands at which position. A function of seed and epoch
/// alone: all ranks have the same one, whatever their number. Reading is safe from any thread.
class Order {
 public:
  virtual ~Order() = default;
  virtual std::int64_t sample_at(std::int64_t position) const = 0;
};

/// 0, 1, 2, ...
std::unique_ptr<const Order> sequential_order();

/// torch.randperm by a CPU generator with the seed `seed + epoch`: the reference's seedable sampler, number for number.
std::unique_ptr<const Order> shuffled_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch);

}  // namespace hortator::data
