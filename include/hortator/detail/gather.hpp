#pragma once

// Collectives on structures of tensors, and on objects. Included by accelerator.hpp, whose members these are.

namespace hortator {

namespace detail {

template <typename T>
constexpr void require_tensor_structure() {
  static_assert(TensorStructure<T>,
                "this collective takes a tensor, or tensors nested in pairs, tuples, vectors, arrays, optionals, maps "
                "with text or whole numbers as keys, examples and structs with `auto fields() { return std::tie(a, b); "
                "}`; other things that lie among them go by gather_object() or broadcast_object_list()");
}

template <typename T>
inline constexpr bool is_vector = false;
template <typename T>
inline constexpr bool is_vector<std::vector<T>> = true;

}  // namespace detail

template <typename T>
T Accelerator::gather(T structure) {
  detail::require_tensor_structure<T>();
  gather_leaves(detail::leaves_of(structure));
  return structure;
}

template <typename T>
T Accelerator::gather_for_metrics(const T& value) {
  if constexpr (!TensorStructure<T> && detail::is_vector<T>) {
    auto objects = gather_object(value);
    const auto samples = samples_of_step();
    if (samples && *samples < static_cast<std::int64_t>(objects.size())) {
      objects.resize(static_cast<std::size_t>(*samples));
    }
    return objects;
  } else {
    detail::require_tensor_structure<T>();
    auto gathered = gather(value);
    for (const auto& leaf : detail::leaves_of(gathered)) *leaf.tensor = without_repetitions(*leaf.tensor);
    return gathered;
  }
}

template <typename... Values>
requires(sizeof...(Values) > 1) std::tuple<Values...> Accelerator::gather_for_metrics(const Values&... values) {
  if constexpr (TensorStructure<std::tuple<Values...>>) {
    return gather_for_metrics(std::tuple<Values...>(values...));
  } else {
    return std::tuple<Values...>{gather_for_metrics(values)...};  // braces: from left to right on all ranks
  }
}

template <typename T>
T Accelerator::reduce(T structure, Reduce operation) {
  detail::require_tensor_structure<T>();
  reduce_leaves(detail::leaves_of(structure), operation);
  return structure;
}

template <typename T>
T Accelerator::broadcast(T structure, int from_process) {
  detail::require_tensor_structure<T>();
  broadcast_leaves(detail::leaves_of(structure), from_process);
  return structure;
}

template <typename T>
T Accelerator::pad_across_processes(T structure, const PadOptions& options) {
  detail::require_tensor_structure<T>();
  pad_leaves(detail::leaves_of(structure), options);
  return structure;
}

template <typename T>
auto Accelerator::gather_object(const T& object) const {
  detail::require_serializable<T>();
  const auto encoded = gather_encoded([&] { return detail::encode(object); });
  std::conditional_t<detail::is_vector<T>, T, std::vector<T>> all;
  decode_together([&] {
    for (const auto& bytes : encoded) {
      T one{};
      detail::decode(bytes, one);
      if constexpr (detail::is_vector<T>) {
        all.insert(all.end(), std::make_move_iterator(one.begin()), std::make_move_iterator(one.end()));
      } else {
        all.push_back(std::move(one));
      }
    }
  });
  return all;
}

template <typename T>
std::vector<T>& Accelerator::broadcast_object_list(std::vector<T>& objects, int from_process) const {
  detail::require_serializable<T>();
  const auto encoded = broadcast_encoded([&] { return detail::encode(objects); }, from_process);
  decode_together([&] {
    if (process_index() != from_process) detail::decode(encoded, objects);
  });
  return objects;
}

}  // namespace hortator
