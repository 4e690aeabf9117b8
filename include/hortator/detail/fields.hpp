#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

/// Access to the fields of plain structs. Counts fields by trying how many values initialise one.
namespace hortator::detail {

inline constexpr std::size_t max_fields = 10;

/// Converts to any type while fields are counted, in unevaluated expressions only.
struct Anything {
  template <typename T>
  operator T() const;
};

template <typename T, std::size_t... i>
constexpr bool can_be_made_of(std::index_sequence<i...> /*values*/) {
  return requires { T{(static_cast<void>(i), Anything{})...}; };
}

/// Converts to a base class of T only.
template <typename T>
struct AnyBase {
  template <typename Base>
  requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) operator Base() const;
};

template <typename T, std::size_t n = max_fields + 1>
constexpr std::size_t count_fields() {
  if constexpr (n == 0) {
    return 0;
  } else if constexpr (can_be_made_of<T>(std::make_index_sequence<n>{})) {
    return n;
  } else {
    return count_fields<T, n - 1>();
  }
}

/// A struct of one to max_fields public fields without a base class. C arrays and bit fields are not supported.
template <typename T>
concept PlainStruct = std::is_class_v<T> && std::is_aggregate_v<T> && !requires {
  T{AnyBase<T>{}};
}
&&(count_fields<T>() > 0) && (count_fields<T>() <= max_fields);

/// Returns a tuple of references to all fields.
template <PlainStruct T>
auto fields_of(T& object) {
  constexpr auto n = count_fields<T>();
  if constexpr (n == 1) {
    auto& [a] = object;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = object;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = object;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = object;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = object;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = object;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  }
}

}  // namespace hortator::detail
