#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include "data/orders/order.hpp"

namespace hortator::data {
namespace {

class PermutedOrder final : public Order {
 public:
  explicit PermutedOrder(at::Tensor permutation)
      : permutation_(std::move(permutation)), samples_(permutation_.const_data_ptr<std::int64_t>()) {}

  std::int64_t sample_at(std::int64_t position) const override { return samples_[position]; }

 private:
  at::Tensor permutation_;
  const std::int64_t* samples_;
};

class RandpermSampler final : public Sampler {
 public:
  std::string name() const override { return "randperm"; }
  std::int64_t epoch_size(std::int64_t dataset_size) const override { return dataset_size; }
  std::unique_ptr<const Order> order(const EpochKey& epoch) const override {
    auto generator = at::detail::createCPUGenerator(epoch.seed + static_cast<std::uint64_t>(epoch.epoch));
    return std::make_unique<PermutedOrder>(at::randperm(epoch.dataset_size, generator, at::TensorOptions(at::kLong)));
  }
};

}  // namespace

std::shared_ptr<const Sampler> randperm_sampler() { return std::make_shared<RandpermSampler>(); }

}  // namespace hortator::data
