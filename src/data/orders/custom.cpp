#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "data/orders/order.hpp"

namespace hortator::data {
namespace {

using SampleAt = std::function<std::int64_t(const EpochKey&, std::int64_t)>;
using Samples = std::function<std::vector<std::int64_t>(const EpochKey&)>;

class FunctionOrder final : public Order {
 public:
  FunctionOrder(SampleAt sample_at, const EpochKey& epoch) : sample_at_(std::move(sample_at)), epoch_(epoch) {}
  std::int64_t sample_at(std::int64_t position) const override { return sample_at_(epoch_, position); }

 private:
  SampleAt sample_at_;
  EpochKey epoch_;
};

class CustomSampler final : public Sampler {
 public:
  using MakeOrder = std::function<std::unique_ptr<const Order>(const EpochKey&)>;

  CustomSampler(std::string name, const CustomOptions& options, MakeOrder make_order)
      : name_(std::move(name)), epoch_size_(options.epoch_size), make_order_(std::move(make_order)) {
    if (epoch_size_ && *epoch_size_ < 0)
      throw UsageError({.what = text::concat("A custom sampler has an epoch of ", *epoch_size_, " positions"),
                        .hint = "use 0 or more"});
  }

  std::string name() const override { return name_; }
  std::int64_t epoch_size(std::int64_t dataset_size) const override { return epoch_size_.value_or(dataset_size); }
  std::unique_ptr<const Order> order(const EpochKey& epoch) const override { return make_order_(epoch); }

 private:
  std::string name_;
  std::optional<std::int64_t> epoch_size_;
  MakeOrder make_order_;
};

}  // namespace
}  // namespace hortator::data

namespace hortator {

std::shared_ptr<const Sampler> custom_sampler(std::string name, data::SampleAt sample_at,
                                              const CustomOptions& options) {
  auto make_order = [sample_at = std::move(sample_at)](const EpochKey& epoch) -> std::unique_ptr<const Order> {
    return std::make_unique<data::FunctionOrder>(sample_at, epoch);
  };
  return std::make_shared<data::CustomSampler>(std::move(name), options, std::move(make_order));
}

std::shared_ptr<const Sampler> custom_sampler(std::string name, data::Samples samples, const CustomOptions& options) {
  auto make_order = [samples = std::move(samples), options](const EpochKey& epoch) {
    auto listed = samples(epoch);
    const auto expected = options.epoch_size.value_or(epoch.dataset_size);
    if (static_cast<std::int64_t>(listed.size()) != expected) {
      throw UsageError(
          {.what = text::concat("The sampler has listed ", text::count(static_cast<long long>(listed.size()), "sample"),
                                " for epoch ", epoch.epoch, ", expected ", expected),
           .why = "all epochs have the same number of batches",
           .hint = "list one for each sample of the data set, or set epoch_size"});
    }
    return data::listed_order(std::move(listed));
  };
  return std::make_shared<data::CustomSampler>(std::move(name), options, std::move(make_order));
}

}  // namespace hortator
