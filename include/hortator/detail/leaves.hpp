#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <hortator/detail/parts.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace hortator {

namespace detail {

template <typename T>
struct HoldsTensorsOnly : std::false_type {};
template <>
struct HoldsTensorsOnly<at::Tensor> : std::true_type {};
template <typename Types>
inline constexpr bool all_hold_tensors_only = false;
template <typename... Types>
inline constexpr bool all_hold_tensors_only<std::tuple<Types...>> = (HoldsTensorsOnly<Types>::value && ...);
template <Structure T>
struct HoldsTensorsOnly<T> : std::bool_constant<all_hold_tensors_only<typename Parts<T>::Types>> {};

/// One tensor of a structure and its path in it, such as "['logits'][0]".
struct Leaf {
  std::string path;
  at::Tensor* tensor;
};

/// Appends the tensors of `whole`, which lies at `path`.
template <typename T>
void collect_leaves(T& whole, const std::string& path, std::vector<Leaf>& leaves) {
  if constexpr (std::same_as<T, at::Tensor>) {
    leaves.push_back({.path = path, .tensor = &whole});
  } else {
    Parts<T>::visit(whole,
                    [&](const PartLabel& label, auto& part) { collect_leaves(part, path + label.text(), leaves); });
  }
}

}  // namespace detail

/// Tensors nested in pairs, tuples, vectors, arrays, optionals, maps with text or whole numbers as keys, examples, and
/// structs with fields(), to any depth.
template <typename T>
concept TensorStructure = detail::HoldsTensorsOnly<T>::value && !std::same_as<T, at::Tensor>;

namespace detail {

/// Returns all tensors of `whole`, in an order that is the same on all ranks.
template <TensorStructure T>
std::vector<Leaf> leaves_of(T& whole) {
  std::vector<Leaf> leaves;
  collect_leaves(whole, "", leaves);
  return leaves;
}

}  // namespace detail
}  // namespace hortator
