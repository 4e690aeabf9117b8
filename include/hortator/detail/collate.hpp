#pragma once

#include <torch/data/example.h>

#include <ATen/ops/tensor.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <hortator/detail/batch_source.hpp>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// How samples become a batch by default: tensors are stacked along a new first dimension, numbers become a vector, and
/// the parts of examples, pairs and tuples are joined separately.
namespace hortator::detail {

template <typename Sample>
struct Collate {
  static_assert(sizeof(Sample) == 0,
                "samples of this type cannot be joined by default: give data_loader a function from "
                "std::vector<sample> to a batch as its third argument");
};

/// Joins one part of all samples.
template <typename Sample, typename Part>
auto collate_part(const std::vector<Sample>& samples, Part part) {
  std::vector<std::decay_t<std::invoke_result_t<Part, const Sample&>>> parts;
  parts.reserve(samples.size());
  for (const auto& sample : samples) parts.push_back(part(sample));
  return Collate<typename decltype(parts)::value_type>::join(parts);
}

template <>
struct Collate<at::Tensor> {
  static at::Tensor join(const std::vector<at::Tensor>& samples) { return data::stack(samples); }
};

/// Integers of all sizes become int64, as labels must be; float and double keep their type.
template <std::integral T>
struct Collate<T> {
  static at::Tensor join(const std::vector<T>& samples) {
    return at::tensor(std::vector<std::int64_t>(samples.begin(), samples.end()));
  }
};
template <std::floating_point T>
struct Collate<T> {
  static at::Tensor join(const std::vector<T>& samples) { return at::tensor(samples); }
};
template <>
struct Collate<bool> {
  static at::Tensor join(const std::vector<bool>& samples) {
    return at::tensor(std::vector<std::uint8_t>(samples.begin(), samples.end())).to(at::kBool);
  }
};

template <typename Data, typename Target>
struct Collate<torch::data::Example<Data, Target>> {
  using Sample = torch::data::Example<Data, Target>;
  static auto join(const std::vector<Sample>& samples) {
    auto data = collate_part(samples, [](const Sample& sample) -> const Data& { return sample.data; });
    auto target = collate_part(samples, [](const Sample& sample) -> const Target& { return sample.target; });
    return torch::data::Example<decltype(data), decltype(target)>(std::move(data), std::move(target));
  }
};

template <typename Data>
struct Collate<torch::data::Example<Data, void>> {
  using Sample = torch::data::Example<Data, void>;
  static auto join(const std::vector<Sample>& samples) {
    auto data = collate_part(samples, [](const Sample& sample) -> const Data& { return sample.data; });
    return torch::data::Example<decltype(data), void>(std::move(data));
  }
};

template <typename... Parts>
struct Collate<std::tuple<Parts...>> {
  using Sample = std::tuple<Parts...>;
  static auto join(const std::vector<Sample>& samples) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::make_tuple(collate_part(samples, [](const Sample& sample) { return std::get<i>(sample); })...);
    }
    (std::index_sequence_for<Parts...>{});
  }
};

template <typename First, typename Second>
struct Collate<std::pair<First, Second>> {
  using Sample = std::pair<First, Second>;
  static auto join(const std::vector<Sample>& samples) {
    return std::make_pair(collate_part(samples, [](const Sample& sample) { return sample.first; }),
                          collate_part(samples, [](const Sample& sample) { return sample.second; }));
  }
};

}  // namespace hortator::detail
