#pragma once

// Implements Collectives' members on structures of tensors and on objects. Included by training/collectives.hpp.

namespace hortator {

namespace detail {

template <typename T>
inline constexpr bool is_tensor_or_structure = std::same_as<T, at::Tensor> || TensorStructure<T>;

/// The vector in which the objects of all ranks arrive: one element a rank, or the joined vectors.
template <typename T>
struct GatheredObjects {
  using Type = std::vector<T>;
  static void add(const std::string& encoded, Type& all) {
    T one{};
    decode(encoded, one);
    all.push_back(std::move(one));
  }
};
template <typename T>
struct GatheredObjects<std::vector<T>> {
  using Type = std::vector<T>;
  static void add(const std::string& encoded, Type& all) {
    Type some;
    decode(encoded, some);
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
};

}  // namespace detail

template <typename T>
[[gnu::noinline]] T Collectives::gather(T tensors) {
  static_assert(detail::is_tensor_or_structure<T>, "gather() takes tensors; gather_object() takes other objects");
  const detail::CallSite site(__builtin_return_address(0));
  if constexpr (std::same_as<T, at::Tensor>) {
    return gather_one(tensors);
  } else {
    gather_leaves(detail::leaves_of(tensors));
    return tensors;
  }
}

template <typename T>
[[gnu::noinline]] T Collectives::reduce(T tensors, Reduce operation) {
  static_assert(detail::is_tensor_or_structure<T>, "reduce() takes tensors, or structures of tensors only");
  const detail::CallSite site(__builtin_return_address(0));
  if constexpr (std::same_as<T, at::Tensor>) {
    return reduce_one(tensors, operation);
  } else {
    reduce_leaves(detail::leaves_of(tensors), operation);
    return tensors;
  }
}

template <typename T>
[[gnu::noinline]] T Collectives::broadcast(T tensors, int from_process) {
  static_assert(detail::is_tensor_or_structure<T>,
                "broadcast() takes tensors; broadcast_object_list() takes other objects");
  const detail::CallSite site(__builtin_return_address(0));
  if constexpr (std::same_as<T, at::Tensor>) {
    broadcast_one(tensors, from_process);
  } else {
    broadcast_leaves(detail::leaves_of(tensors), from_process);
  }
  return tensors;
}

template <typename T>
[[gnu::noinline]] T Collectives::pad_across_processes(T tensors, const PadOptions& options) {
  static_assert(detail::is_tensor_or_structure<T>,
                "pad_across_processes() takes tensors, or structures of tensors only");
  const detail::CallSite site(__builtin_return_address(0));
  if constexpr (std::same_as<T, at::Tensor>) {
    return pad_one(tensors, options);
  } else {
    pad_leaves(detail::leaves_of(tensors), options);
    return tensors;
  }
}

template <typename T>
[[gnu::noinline]] auto Collectives::gather_object(const T& object) const {
  const detail::CallSite site(__builtin_return_address(0));
  detail::require_serializable<T>();
  const auto encoded = gather_encoded([&] { return detail::encode(object); });
  typename detail::GatheredObjects<T>::Type all;
  decode_together([&] {
    for (const auto& bytes : encoded) detail::GatheredObjects<T>::add(bytes, all);
  });
  return all;
}

template <typename T>
[[gnu::noinline]] std::vector<T>& Collectives::broadcast_object_list(std::vector<T>& objects, int from_process) const {
  const detail::CallSite site(__builtin_return_address(0));
  detail::require_serializable<T>();
  const auto encoded = broadcast_encoded([&] { return detail::encode(objects); }, from_process);
  decode_together([&] { detail::decode(encoded, objects); });
  return objects;
}

}  // namespace hortator
