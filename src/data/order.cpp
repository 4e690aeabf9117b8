#include "data/order.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

namespace hortator::data {
namespace {

class SequentialOrder final : public Order {
 public:
  std::int64_t sample_at(std::int64_t position) const override { return position; }
};

class PermutedOrder final : public Order {
 public:
  explicit PermutedOrder(at::Tensor permutation)
      : permutation_(std::move(permutation)), samples_(permutation_.const_data_ptr<std::int64_t>()) {}

  std::int64_t sample_at(std::int64_t position) const override { return samples_[position]; }

 private:
  at::Tensor permutation_;
  const std::int64_t* samples_;
};

}  // namespace

std::unique_ptr<const Order> sequential_order() { return std::make_unique<SequentialOrder>(); }

std::unique_ptr<const Order> shuffled_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch) {
  auto generator = at::detail::createCPUGenerator(seed + static_cast<std::uint64_t>(epoch));
  return std::make_unique<PermutedOrder>(at::randperm(samples, generator, at::TensorOptions(at::kLong)));
}

}  // namespace hortator::data
