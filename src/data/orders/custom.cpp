#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "data/orders/order.hpp"

namespace hortator {
namespace {

std::shared_ptr<const Sampler> made(std::string name, const CustomOptions& options, data::MakeOrder make_order) {
  const auto size = options.epoch_size;
  if (size && *size < 0)
    throw UsageError(
        {.what = text::concat("A custom sampler has an epoch of ", *size, " positions"), .hint = "use 0 or more"});
  return data::make_sampler(
      std::move(name), [size](std::int64_t dataset_size) { return size.value_or(dataset_size); },
      std::move(make_order));
}

}  // namespace

std::shared_ptr<const Sampler> custom_sampler(std::string name,
                                              std::function<std::int64_t(const EpochKey&, std::int64_t)> sample_at,
                                              const CustomOptions& options) {
  return made(std::move(name), options, [sample_at = std::move(sample_at)](const EpochKey& epoch) {
    return data::order_of([sample_at, epoch](std::int64_t position) { return sample_at(epoch, position); });
  });
}

std::shared_ptr<const Sampler> custom_sampler(std::string name,
                                              std::function<std::vector<std::int64_t>(const EpochKey&)> samples,
                                              const CustomOptions& options) {
  return made(std::move(name), options, [samples = std::move(samples), options](const EpochKey& epoch) {
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
  });
}

}  // namespace hortator
