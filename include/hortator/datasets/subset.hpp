#pragma once

#include <cstdint>
#include <hortator/datasets/sampler.hpp>
#include <hortator/detail/dataset_source.hpp>
#include <hortator/export.hpp>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace hortator {

namespace data {
/// The order of a subset. Throws UsageError for a sample that a data set of size `dataset_size` does not have.
HORTATOR_API std::shared_ptr<const Order> order_of_subset(std::vector<std::int64_t> samples, std::int64_t dataset_size);
HORTATOR_API std::vector<std::int64_t> samples_at(const Order& order, std::span<const std::int64_t> positions);
}  // namespace data

/// Some samples of a data set, in a given order. It can be used like any other data set.
template <detail::SizedDataset Dataset>
class Subset {
 public:
  Subset(Dataset dataset, std::shared_ptr<const Order> order, std::int64_t size)
      : dataset_(std::move(dataset)), order_(std::move(order)), size_(size) {}

  std::int64_t size() const { return size_; }

  auto get(std::int64_t i) const requires detail::SampleDataset<const Dataset> {
    return dataset_.get(order_->sample_at(i));
  }
  auto get(std::int64_t i) requires(detail::SampleDataset<Dataset> && !detail::SampleDataset<const Dataset>) {
    return dataset_.get(order_->sample_at(i));
  }
  auto get_batch(std::span<const std::int64_t> positions) const requires detail::BatchDataset<const Dataset> {
    return dataset_.get_batch(std::span<const std::int64_t>(data::samples_at(*order_, positions)));
  }
  auto get_batch(std::span<const std::int64_t> positions) requires(detail::BatchDataset<Dataset> &&
                                                                   !detail::BatchDataset<const Dataset>) {
    return dataset_.get_batch(std::span<const std::int64_t>(data::samples_at(*order_, positions)));
  }

 private:
  Dataset dataset_;
  std::shared_ptr<const Order> order_;
  std::int64_t size_;
};

/// The samples with these numbers, in this order. A number may occur several times.
template <typename Dataset>
Subset<Dataset> subset(Dataset dataset, const std::vector<std::int64_t>& samples) {
  const auto size = static_cast<std::int64_t>(samples.size());
  auto order = data::order_of_subset(samples, detail::size_of(dataset));
  return Subset<Dataset>(std::move(dataset), std::move(order), size);
}

}  // namespace hortator
