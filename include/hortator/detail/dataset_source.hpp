#pragma once

#include <concepts>
#include <cstdint>
#include <hortator/detail/batch_source.hpp>
#include <hortator/detail/collate.hpp>
#include <hortator/detail/typed_source.hpp>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace hortator::detail {

template <typename D>
concept SizedDataset = requires(D& dataset) {
  dataset.size();
};
template <typename D>
concept SampleDataset = SizedDataset<D> && requires(D& dataset, std::int64_t i) {
  dataset.get(i);
};
template <typename D>
concept BatchDataset = SizedDataset<D> && requires(D& dataset, std::span<const std::int64_t> samples) {
  dataset.get_batch(samples);
};

template <SampleDataset D>
using SampleOf = std::decay_t<decltype(std::declval<D&>().get(std::int64_t{}))>;

/// The number of samples, also of torch::data's data sets, whose size() returns an optional.
template <SizedDataset D>
std::int64_t size_of(D& dataset) {
  const auto size = dataset.size();
  if constexpr (std::integral<std::decay_t<decltype(size)>>) {
    return static_cast<std::int64_t>(size);
  } else {
    if (!size) data::throw_unknown_size();
    return static_cast<std::int64_t>(*size);
  }
}

/// Reads whole batches with the data set's get_batch().
struct ReadBatch {
  template <BatchDataset D>
  auto operator()(D& dataset, std::span<const std::int64_t> samples) const {
    try {
      return dataset.get_batch(samples);
    } catch (...) {
      data::throw_unreadable(samples);
    }
  }
};

/// Reads samples one by one and joins them.
template <typename Join>
struct ReadSamples {
  Join join;

  template <SampleDataset D>
  auto operator()(D& dataset, std::span<const std::int64_t> samples) {
    return read(dataset, samples, join);
  }
  /// Safe for several threads.
  template <SampleDataset D>
  requires std::invocable<const Join&, std::vector<SampleOf<D>>>
  auto operator()(D& dataset, std::span<const std::int64_t> samples) const { return read(dataset, samples, join); }

 private:
  template <SampleDataset D>
  static auto read(D& dataset, std::span<const std::int64_t> samples, auto& join) {
    std::vector<SampleOf<D>> parts;
    parts.reserve(samples.size());
    for (const auto& sample : samples) {
      data::draw_for_sample(parts.size());
      parts.push_back(read_one(dataset, sample));
    }
    data::draw_for_batch();
    try {
      return join(std::move(parts));
    } catch (...) {
      data::throw_not_joined(samples);
    }
  }

  template <SampleDataset D>
  static SampleOf<D> read_one(D& dataset, const std::int64_t& sample) {
    try {
      return dataset.get(sample);
    } catch (...) {
      data::throw_unreadable({&sample, 1});
    }
  }
};

struct DefaultJoin {
  template <typename Sample>
  auto operator()(const std::vector<Sample>& samples) const {
    return Collate<Sample>::join(samples);
  }
};

/// A type-erased data set with the function that reads batches from it.
template <typename Dataset, typename Read>
class DatasetSource final
    : public TypedSource<std::decay_t<std::invoke_result_t<Read&, Dataset&, std::span<const std::int64_t>>>,
                         data::SampleSource> {
 public:
  using Batch = std::decay_t<std::invoke_result_t<Read&, Dataset&, std::span<const std::int64_t>>>;

  DatasetSource(Dataset dataset, Read read)
      : dataset_(std::move(dataset)), read_(std::move(read)), size_(size_of(dataset_)) {}

  std::int64_t size() const override { return size_; }
  bool is_shareable() const override {
    return std::invocable<const Read&, const Dataset&, std::span<const std::int64_t>>;
  }
  std::shared_ptr<void> read(std::span<const std::int64_t> samples) override {
    return std::make_shared<Batch>(read_(dataset_, samples));
  }

 private:
  Dataset dataset_;
  Read read_;
  std::int64_t size_;
};

}  // namespace hortator::detail
