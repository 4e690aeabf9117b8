#pragma once

#include <concepts>
#include <cstdint>
#include <hortator/detail/dataset_source.hpp>
#include <hortator/detail/each_tensor.hpp>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace torch::data {
template <typename Dataset, typename Batch, typename BatchRequest>
class DataLoaderBase;
}

/// Which data sets of torch::data work with loaders.
namespace hortator::detail {

template <typename T>
concept TorchStreamDataset = requires(T& dataset, std::size_t count) {
  typename T::BatchRequestType;
  requires std::same_as<typename T::BatchRequestType, std::size_t>;
  dataset.get_batch(count);
};

/// A data set whose get_batch() takes numbers of type std::size_t, such as torch::data's MapDataset.
template <typename D>
concept TorchBatchDataset =
    SizedDataset<D> && !TorchStreamDataset<D> && requires(D & dataset, std::vector<std::size_t>& samples) {
  dataset.get_batch(samples);
};

template <typename T>
inline constexpr bool is_list_of_examples = false;
template <typename T>
inline constexpr bool is_list_of_examples<std::vector<T>> = is_example<T>;

/// Reads what the data set returns: a batch that a transform such as torch::data::transforms::Stack has joined. A list
/// of examples is joined here.
struct ReadTorchBatch {
  template <TorchBatchDataset D>
  auto operator()(D& dataset, std::span<const std::int64_t> samples) const {
    auto batch = get(dataset, samples);
    if constexpr (is_list_of_examples<decltype(batch)>) {
      try {
        return DefaultJoin{}(batch);
      } catch (...) {
        data::throw_not_joined(samples);
      }
    } else {
      return batch;
    }
  }

 private:
  template <typename D>
  static auto get(D& dataset, std::span<const std::int64_t> samples) {
    std::vector<std::size_t> numbers(samples.begin(), samples.end());
    try {
      return dataset.get_batch(numbers);
    } catch (...) {
      data::throw_unreadable(samples);
    }
  }
};

template <typename D, typename Batch, typename Request>
std::true_type derives_from_torch_loader(const torch::data::DataLoaderBase<D, Batch, Request>*);
std::false_type derives_from_torch_loader(const void*);

template <typename T>
inline constexpr bool is_torch_loader = decltype(derives_from_torch_loader(static_cast<T*>(nullptr)))::value;
template <typename T, typename Delete>
inline constexpr bool is_torch_loader<std::unique_ptr<T, Delete>> = is_torch_loader<T>;
template <typename T>
inline constexpr bool is_torch_loader<std::shared_ptr<T>> = is_torch_loader<T>;

}  // namespace hortator::detail
