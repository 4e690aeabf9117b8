#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <hortator/datasets/subset.hpp>
#include <hortator/detail/dataset_source.hpp>
#include <hortator/detail/parts.hpp>
#include <hortator/export.hpp>
#include <hortator/state.hpp>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hortator {

/// Options of State::split_between_processes.
struct SplitOptions {
  /// Whether ranks with fewer values repeat the last of all values, so that all ranks have the same number.
  bool apply_padding = false;
};

namespace detail {

/// What one rank gets of values that all ranks have: `count` of them from `begin` on, then `padding` copies of the last
/// of all values.
struct SplitRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t padding = 0;
};

/// A rank's position among those that get different values, and their number.
struct SplitPosition {
  int rank = 0;
  int world = 1;
};

/// The position of `rank` of `world` ranks: that of its batches in the mesh of the newest Accelerator of these ranks.
HORTATOR_API SplitPosition split_position(int rank, int world);

/// Shares are contiguous; the first ranks get one more. Throws UsageError if there is no value for padding to repeat.
HORTATOR_API SplitRange share_of(std::int64_t values, int rank, int world, const SplitOptions& options);

HORTATOR_API std::int64_t values_in(const at::Tensor& tensor);
HORTATOR_API at::Tensor share(const at::Tensor& tensor, const SplitRange& mine);
HORTATOR_API std::shared_ptr<const Order> order_of_share(const SplitRange& mine, std::int64_t values);
[[noreturn]] HORTATOR_API void throw_uneven(const std::string& first, std::int64_t first_values,
                                            const std::string& other, std::int64_t other_values);

template <typename T>
inline constexpr bool is_list = false;
template <typename T>
inline constexpr bool is_list<std::vector<T>> = true;

template <typename T>
struct SplitsInto : std::bool_constant<std::same_as<T, at::Tensor> || is_list<T>> {};
template <typename Types>
inline constexpr bool all_split = false;
template <typename... Types>
inline constexpr bool all_split<std::tuple<Types...>> = (SplitsInto<Types>::value && ...);
template <typename T>
requires(Structure<T> && !is_list<T> && !is_optional<T>) struct SplitsInto<T>
    : std::bool_constant<all_split<typename Parts<T>::Types>> {
};

template <typename T>
std::int64_t values_in(const std::vector<T>& values) {
  return static_cast<std::int64_t>(values.size());
}

template <typename T>
std::vector<T> share(const std::vector<T>& values, const SplitRange& mine) {
  std::vector<T> result(values.begin() + mine.begin, values.begin() + mine.begin + mine.count);
  if (mine.padding > 0) result.insert(result.end(), static_cast<std::size_t>(mine.padding), values.back());
  return result;
}

/// Calls see(place, list) for each vector and tensor in `whole`.
template <typename T, typename See>
void each_list(T& whole, const std::string& place, const See& see) {
  if constexpr (std::same_as<T, at::Tensor> || is_list<T>) {
    see(place, whole);
  } else {
    Parts<T>::visit(whole, [&](const PartLabel& label, auto& part) { each_list(part, place + label.text(), see); });
  }
}

/// The number of values that all lists of a structure have; 0 if it has none.
template <typename T>
std::int64_t common_values(T& whole) {
  std::optional<std::int64_t> common;
  std::string first;
  each_list(whole, "", [&](const std::string& place, const auto& list) {
    const auto values = values_in(list);
    if (!common) first = place;
    if (values != common.value_or(values)) throw_uneven(first, *common, place, values);
    common = values;
  });
  return common.value_or(0);
}

/// The share of `rank`.
template <typename T>
auto split(T&& values, int rank, int world, const SplitOptions& options) {
  using Values = std::remove_cvref_t<T>;
  if constexpr (SplitsInto<Values>::value) {
    if (world == 1) return Values(std::forward<T>(values));  // even if lists differ in length: nothing is split
  }
  if constexpr (std::same_as<Values, at::Tensor> || is_list<Values>) {
    return share(values, share_of(values_in(values), rank, world, options));
  } else if constexpr (SplitsInto<Values>::value) {
    Values parts(std::forward<T>(values));
    const auto mine = share_of(common_values(parts), rank, world, options);
    each_list(parts, "", [&](const std::string&, auto& list) { list = share(list, mine); });
    return parts;
  } else {
    static_assert(SampleDataset<Values> || BatchDataset<Values>,
                  "split_between_processes() takes vectors, tensors, maps, tuples and structs of them, and data sets");
    Values dataset(std::forward<T>(values));
    const auto size = size_of(dataset);
    const auto mine = share_of(size, rank, world, options);
    return Subset<Values>(std::move(dataset), order_of_share(mine, size), mine.count + mine.padding);
  }
}

}  // namespace detail

template <typename T>
auto State::split_between_processes(T&& values, const SplitOptions& options) const {
  const auto mine = detail::split_position(process_index(), num_processes());
  return detail::split(std::forward<T>(values), mine.rank, mine.world, options);
}

template <typename T>
auto State::split_between_processes(T&& values) const {
  return split_between_processes(std::forward<T>(values), SplitOptions());
}

}  // namespace hortator
