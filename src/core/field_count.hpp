#pragma once

#include <cstddef>
#include <utility>

namespace hortator::core {
namespace detail {

/// Converts to any type, in unevaluated code.
struct AnyField {
  template <typename Field>
  operator Field() const;  // NOLINT(google-explicit-constructor)
};

template <typename Struct, std::size_t... indices>
constexpr bool takes(std::index_sequence<indices...>) {
  return requires { Struct{(static_cast<void>(indices), AnyField())...}; };
}

}  // namespace detail

/// The number of members of an aggregate without base classes and arrays, at most 63. A static_assert on it finds a
/// member that a table does not list.
template <typename Struct, std::size_t count = 63>
consteval std::size_t field_count() {
  if constexpr (count == 0 || detail::takes<Struct>(std::make_index_sequence<count>())) {
    return count;
  } else {
    return field_count<Struct, count - 1>();
  }
}

}  // namespace hortator::core
