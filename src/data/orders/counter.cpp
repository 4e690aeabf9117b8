#include "data/orders/order.hpp"
#include "data/orders/permutation.hpp"

namespace hortator::data {
namespace {

constexpr std::uint64_t purpose_of_counter = 1;

class CounterOrder final : public Order {
 public:
  CounterOrder(std::int64_t samples, std::uint64_t key) : permutation_(samples, key) {}
  std::int64_t sample_at(std::int64_t position) const override { return permutation_(position); }

 private:
  Permutation permutation_;
};

class CounterSampler final : public Sampler {
 public:
  std::string name() const override { return "counter"; }
  std::int64_t epoch_size(std::int64_t dataset_size) const override { return dataset_size; }
  std::unique_ptr<const Order> order(const EpochKey& epoch) const override {
    return std::make_unique<CounterOrder>(epoch.dataset_size, draws_of(epoch, purpose_of_counter));
  }
};

}  // namespace

std::shared_ptr<const Sampler> counter_sampler() { return std::make_shared<CounterSampler>(); }

}  // namespace hortator::data
