#pragma once

#include <hortator/detail/call_site.hpp>

// Implements the Accelerator's collectives on structures of tensors and on objects. Included by accelerator.hpp.

namespace hortator {

namespace detail {

template <typename T>
constexpr void require_tensor_structure() {
  static_assert(TensorStructure<T>,
                "this collective takes a tensor, or tensors nested in pairs, tuples, vectors, arrays, optionals, maps "
                "with text or whole numbers as keys, examples and structs with `auto fields() { return std::tie(a, b); "
                "}`; send other objects by gather_object() or broadcast_object_list()");
}

template <typename T>
inline constexpr bool is_vector = false;
template <typename T>
inline constexpr bool is_vector<std::vector<T>> = true;

/// Decodes the vectors that the ranks encoded and appends them to `all`, in rank order.
template <typename All>
void append_decoded(const std::vector<std::string>& encoded, All& all) {
  for (const auto& bytes : encoded) {
    All some;
    decode(bytes, some);
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
}

}  // namespace detail

template <typename T>
[[gnu::noinline]] T Accelerator::gather(T structure) {
  const detail::CallSite site(__builtin_return_address(0));
  detail::require_tensor_structure<T>();
  gather_leaves(detail::leaves_of(structure));
  return structure;
}

template <typename T>
std::optional<T> Accelerator::gather_as(const T& value, const detail::Gathering& how) {
  if constexpr (!std::same_as<T, at::Tensor> && !TensorStructure<T> && detail::is_vector<T>) {
    detail::require_serializable<T>();
    const auto keep = [](T& objects, const std::optional<std::int64_t>& rows) {
      if (rows && *rows < static_cast<std::int64_t>(objects.size())) objects.resize(static_cast<std::size_t>(*rows));
    };
    auto mine = value;
    keep(mine, how.mine);
    const auto encoded = gather_encoded([&] { return detail::encode(mine); }, how);
    T all;
    decode_together([&] { detail::append_decoded(encoded, all); }, how);
    keep(all, how.first);
    return how.to_main && !is_main_process() ? std::nullopt : std::optional<T>(std::move(all));
  } else {
    auto gathered = value;
    if constexpr (std::same_as<T, at::Tensor>) {
      gather_leaves({detail::Leaf{.path = "", .tensor = &gathered}}, how);
    } else {
      detail::require_tensor_structure<T>();
      gather_leaves(detail::leaves_of(gathered), how);
    }
    return how.to_main && !is_main_process() ? std::nullopt : std::optional<T>(std::move(gathered));
  }
}

template <typename T>
[[gnu::noinline]] T Accelerator::gather_for_metrics(const T& value) {
  const detail::CallSite site(__builtin_return_address(0));
  return *gather_as(value, gathering_for_metrics());
}

template <typename T>
[[gnu::noinline]] std::optional<T> Accelerator::gather_to_main(const T& value) {
  const detail::CallSite site(__builtin_return_address(0));
  return gather_as(value, {.to_main = true});
}

template <typename T>
[[gnu::noinline]] std::optional<T> Accelerator::gather_for_metrics_to_main(const T& value) {
  const detail::CallSite site(__builtin_return_address(0));
  auto how = gathering_for_metrics();
  how.to_main = true;
  return gather_as(value, how);
}

template <typename... Values>
requires(sizeof...(Values) > 1)
    [[gnu::noinline]] std::tuple<Values...> Accelerator::gather_for_metrics(const Values&... values) {
  const detail::CallSite site(__builtin_return_address(0));
  if constexpr (TensorStructure<std::tuple<Values...>>) {
    return gather_for_metrics(std::tuple<Values...>(values...));
  } else {
    return std::tuple<Values...>{gather_for_metrics(values)...};  // braces: from left to right on all ranks
  }
}

template <typename T>
[[gnu::noinline]] T Accelerator::reduce(T structure, Reduce operation, double scale) {
  const detail::CallSite site(__builtin_return_address(0));
  detail::require_tensor_structure<T>();
  reduce_leaves(detail::leaves_of(structure), operation, scale);
  return structure;
}

template <typename T>
[[gnu::noinline]] T Accelerator::broadcast(T structure, int from_process) {
  const detail::CallSite site(__builtin_return_address(0));
  detail::require_tensor_structure<T>();
  broadcast_leaves(detail::leaves_of(structure), from_process);
  return structure;
}

template <typename T>
[[gnu::noinline]] T Accelerator::pad_across_processes(T structure, const PadOptions& options) {
  const detail::CallSite site(__builtin_return_address(0));
  detail::require_tensor_structure<T>();
  pad_leaves(detail::leaves_of(structure), options);
  return structure;
}

template <typename T>
[[gnu::noinline]] auto Accelerator::gather_object(const T& object) const {
  const detail::CallSite site(__builtin_return_address(0));
  detail::require_serializable<T>();
  const auto encoded = gather_encoded([&] { return detail::encode(object); });
  std::conditional_t<detail::is_vector<T>, T, std::vector<T>> all;
  decode_together([&] {
    if constexpr (detail::is_vector<T>) {
      detail::append_decoded(encoded, all);
    } else {
      for (const auto& bytes : encoded) {
        T one{};
        detail::decode(bytes, one);
        all.push_back(std::move(one));
      }
    }
  });
  return all;
}

template <Mergeable Metric>
[[gnu::noinline]] Metric Accelerator::merge(const Metric& metric) const {
  const detail::CallSite site(__builtin_return_address(0));
  using Tensors = std::vector<at::Tensor>;
  auto mine = metric;
  const auto tensors = std::apply([](const auto&... field) { return Tensors{field...}; }, mine.fields());
  std::optional<Metric> merged;
  for (const auto& counted : gather_object(std::vector<Tensors>{tensors})) {
    auto one = metric;
    std::size_t next = 0;
    std::apply([&](auto&... field) { ((field = counted.at(next++)), ...); }, one.fields());
    merged ? merged->merge(one) : void(merged.emplace(std::move(one)));
  }
  return *std::move(merged);
}

template <typename T>
[[gnu::noinline]] std::vector<T>& Accelerator::broadcast_object_list(std::vector<T>& objects, int from_process) const {
  const detail::CallSite site(__builtin_return_address(0));
  detail::require_serializable<T>();
  const auto encoded = broadcast_encoded([&] { return detail::encode(objects); }, from_process);
  decode_together([&] {
    if (process_index() != from_process) detail::decode(encoded, objects);
  });
  return objects;
}

}  // namespace hortator
