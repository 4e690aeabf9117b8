#pragma once

#include <torch/data/example.h>

#include <ATen/core/Tensor.h>

#include <concepts>
#include <hortator/detail/fields.hpp>
#include <hortator/detail/parts.hpp>
#include <iterator>
#include <ranges>
#include <string_view>
#include <tuple>
#include <type_traits>

/// Visits the tensors in a value at any depth: in optionals, containers, maps, tuples, examples, structs with fields()
/// and plain structs. Skips tensors in other types and const ones.
namespace hortator::detail {

template <typename T>
inline constexpr bool is_example = false;
template <typename Data, typename Target>
inline constexpr bool is_example<torch::data::Example<Data, Target>> = true;

template <typename T>
concept MapLike = requires {
  typename T::key_type;
  typename T::mapped_type;
};
/// An entry of torch::OrderedDict.
template <typename T>
concept NamedItem = requires(T item) {
  item.key();
  item.value();
};
/// Elements that can be written to.
template <typename T>
concept Container = std::ranges::forward_range<T> && !std::convertible_to<T, std::string_view> &&
                    std::is_lvalue_reference_v<std::ranges::range_reference_t<T>> &&
                    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<T>>>;
template <typename T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};

/// Calls visit(tensor) for each tensor in `value`.
template <typename T, typename Visit>
void each_tensor(T& value, const Visit& visit) {
  const auto into_all = [&](auto&... parts) { (each_tensor(parts, visit), ...); };
  if constexpr (std::is_same_v<T, at::Tensor>) {
    visit(value);
  } else if constexpr (is_optional<T>) {
    if (value) each_tensor(*value, visit);
  } else if constexpr (is_example<T>) {
    each_tensor(value.data, visit);
    if constexpr (requires { value.target; }) each_tensor(value.target, visit);
  } else if constexpr (MapLike<T>) {
    for (auto& [key, part] : value) each_tensor(part, visit);
  } else if constexpr (NamedItem<T>) {
    each_tensor(value.value(), visit);
  } else if constexpr (Container<T>) {
    for (auto& part : value) each_tensor(part, visit);
  } else if constexpr (TupleLike<T>) {
    std::apply(into_all, value);
  } else if constexpr (HasFields<T>) {
    std::apply(into_all, value.fields());
  } else if constexpr (PlainStruct<T>) {
    std::apply(into_all, fields_of(value));
  }
}

}  // namespace hortator::detail
