#include "data/orders/order.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include <hortator/error.hpp>
#include <utility>

#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "data/orders/permutation.hpp"

namespace hortator {

Order::~Order() = default;
Sampler::~Sampler() = default;

namespace data {
namespace {

constexpr std::uint64_t purpose_of_counter = 1;

class FunctionOrder final : public Order {
 public:
  explicit FunctionOrder(std::function<std::int64_t(std::int64_t)> sample_at) : sample_at_(std::move(sample_at)) {}
  std::int64_t sample_at(std::int64_t position) const override { return sample_at_(position); }

 private:
  std::function<std::int64_t(std::int64_t)> sample_at_;
};

class FunctionSampler final : public Sampler {
 public:
  FunctionSampler(std::string name, EpochSize epoch_size, MakeOrder make_order)
      : name_(std::move(name)), epoch_size_(std::move(epoch_size)), make_order_(std::move(make_order)) {}
  std::string name() const override { return name_; }
  std::int64_t epoch_size(std::int64_t dataset_size) const override { return epoch_size_(dataset_size); }
  std::unique_ptr<const Order> order(const EpochKey& epoch) const override { return make_order_(epoch); }

 private:
  std::string name_;
  EpochSize epoch_size_;
  MakeOrder make_order_;
};

}  // namespace

std::shared_ptr<const Sampler> make_sampler(std::string name, EpochSize epoch_size, MakeOrder make_order) {
  return std::make_shared<FunctionSampler>(std::move(name), std::move(epoch_size), std::move(make_order));
}

std::unique_ptr<const Order> order_of(std::function<std::int64_t(std::int64_t)> sample_at) {
  return std::make_unique<FunctionOrder>(std::move(sample_at));
}

std::unique_ptr<const Order> listed_order(std::vector<std::int64_t> samples) {
  return order_of(
      [samples = std::move(samples)](std::int64_t position) { return samples[static_cast<std::size_t>(position)]; });
}

std::shared_ptr<const Sampler> sequential_sampler() {
  return make_sampler("sequential", std::identity(),
                      [](const EpochKey& /*epoch*/) { return order_of(std::identity()); });
}

std::shared_ptr<const Sampler> counter_sampler() {
  return make_sampler("counter", std::identity(), [](const EpochKey& epoch) {
    const Permutation permutation(epoch.dataset_size, draws_of(epoch, purpose_of_counter));
    return order_of([permutation](std::int64_t position) { return permutation(position); });
  });
}

std::shared_ptr<const Sampler> randperm_sampler() {
  return make_sampler("randperm", std::identity(), [](const EpochKey& epoch) {
    auto generator = at::detail::createCPUGenerator(epoch.seed + static_cast<std::uint64_t>(epoch.epoch));
    const auto samples = at::randperm(epoch.dataset_size, generator, at::TensorOptions(at::kLong));
    return order_of(
        [samples, first = samples.const_data_ptr<std::int64_t>()](std::int64_t position) { return first[position]; });
  });
}

std::uint64_t draws_of(const EpochKey& epoch, std::uint64_t purpose) {
  return core::mix(core::mix(core::mix(0, purpose), epoch.seed), static_cast<std::uint64_t>(epoch.epoch));
}

void require_one_each(std::string_view what, std::size_t count, std::int64_t dataset_size) {
  if (static_cast<std::int64_t>(count) == dataset_size) return;
  throw UsageError({.what = text::concat("The sampler has ", count, ' ', what, ", but the data set has ",
                                         text::count(dataset_size, "sample")),
                    .hint = "give one for each sample"});
}

}  // namespace data
}  // namespace hortator
