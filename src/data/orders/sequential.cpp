#include "data/orders/order.hpp"

namespace hortator::data {
namespace {

class SequentialOrder final : public Order {
 public:
  std::int64_t sample_at(std::int64_t position) const override { return position; }
};

class SequentialSampler final : public Sampler {
 public:
  std::string name() const override { return "sequential"; }
  std::int64_t epoch_size(std::int64_t dataset_size) const override { return dataset_size; }
  std::unique_ptr<const Order> order(const EpochKey& /*epoch*/) const override {
    return std::make_unique<SequentialOrder>();
  }
};

}  // namespace

std::shared_ptr<const Sampler> sequential_sampler() { return std::make_shared<SequentialSampler>(); }

}  // namespace hortator::data
