#pragma once

#include <array>
#include <concepts>
#include <deque>
#include <functional>
#include <hortator/training/objects.hpp>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace hortator {

/// A class with save() and load(), which can be saved in checkpoints and sent between ranks.
template <typename T>
concept Checkpointable = requires(T& object, const T& constant, StateWriter& out, const StateReader& in) {
  constant.save(out);
  object.load(in);
};

namespace detail {

template <typename T>
concept HasObjectTraits = requires(ObjectWriter& out, ObjectReader& in, T& value, const T& constant) {
  ObjectTraits<T>::write(out, constant);
  ObjectTraits<T>::read(in, value);
};

/// nlohmann::json, recognised by its members, so that its header is not needed here.
template <typename T>
concept HasCbor = requires(const T& value, const std::vector<std::uint8_t>& bytes) {
  { T::to_cbor(value) } -> std::same_as<std::vector<std::uint8_t>>;
  { T::from_cbor(bytes) } -> std::same_as<T>;
};

template <typename T>
inline constexpr bool is_view =
    std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::same_as<T, std::string_view>;
template <typename T, std::size_t extent>
inline constexpr bool is_view<std::span<T, extent>> = true;
template <typename T>
inline constexpr bool is_view<std::reference_wrapper<T>> = true;
template <typename T>
inline constexpr bool is_container = false;  ///< whether its elements are serializable is checked separately
template <typename T, std::size_t size>
inline constexpr bool is_container<std::array<T, size>> = true;
template <typename T>
inline constexpr bool is_container<std::optional<T>> = true;
template <typename... T>
inline constexpr bool is_container<std::variant<T...>> = true;
template <typename... T>
inline constexpr bool is_container<std::tuple<T...>> = true;
template <typename A, typename B>
inline constexpr bool is_container<std::pair<A, B>> = true;

/// Numbers, enumerations and structs of only these, which are copied byte by byte. They must not contain pointers; the
/// compiler cannot check that inside a struct.
template <typename T>
concept PlainObject =
    std::is_trivially_copyable_v<T> && std::default_initializable<T> && !is_view<T> && !is_container<T>;

template <typename T>
concept OwnWay = HasObjectTraits<T> || HasFields<T> || Checkpointable<T> || HasCbor<T> || PlainObject<T> ||
    std::same_as<T, at::Tensor>;

template <typename T>
struct IsSerializable : std::bool_constant<OwnWay<T>> {};
template <typename... T>
inline constexpr bool all_serializable = (IsSerializable<T>::value && ...);

template <typename T>
struct IsSerializable<std::vector<T>> : IsSerializable<T> {};
template <typename T>
struct IsSerializable<std::deque<T>> : IsSerializable<T> {};
template <typename T>
struct IsSerializable<std::list<T>> : IsSerializable<T> {};
template <typename T, typename... More>
struct IsSerializable<std::set<T, More...>> : IsSerializable<T> {};
template <typename T, typename... More>
struct IsSerializable<std::unordered_set<T, More...>> : IsSerializable<T> {};
template <typename T, std::size_t size>
struct IsSerializable<std::array<T, size>> : IsSerializable<T> {};
template <typename T>
struct IsSerializable<std::optional<T>> : IsSerializable<T> {};
template <typename K, typename T, typename... More>
struct IsSerializable<std::map<K, T, More...>> : std::bool_constant<all_serializable<K, T>> {};
template <typename K, typename T, typename... More>
struct IsSerializable<std::unordered_map<K, T, More...>> : std::bool_constant<all_serializable<K, T>> {};
template <typename... T>
struct IsSerializable<std::tuple<T...>> : std::bool_constant<all_serializable<T...>> {};
template <typename A, typename B>
struct IsSerializable<std::pair<A, B>> : std::bool_constant<all_serializable<A, B>> {};
template <typename... T>
struct IsSerializable<std::variant<T...>> : std::bool_constant<all_serializable<T...>> {};
template <>
struct IsSerializable<std::string> : std::true_type {};
template <>
struct IsSerializable<std::monostate> : std::true_type {};
template <typename Data, typename Target>
struct IsSerializable<torch::data::Example<Data, Target>> : std::bool_constant<all_serializable<Data, Target>> {};
template <typename Data>
struct IsSerializable<torch::data::Example<Data, void>> : IsSerializable<Data> {};

}  // namespace detail

/// What gather_object() and broadcast_object_list() can send: numbers, enumerations, plain structs; text, tensors;
/// nlohmann::json; pairs, tuples, vectors, maps, sets, optionals and variants of them; structs with fields(); classes
/// with save and load; types with ObjectTraits. All of them must be default-constructible.
template <typename T>
concept Serializable = detail::IsSerializable<T>::value && std::default_initializable<T>;

namespace detail {

template <typename T>
constexpr void require_serializable() {
  static_assert(Serializable<T>,
                "objects of this type cannot travel between ranks: give it `auto fields() { return std::tie(a, b); }`, "
                "or save(StateWriter&) const and load(const StateReader&), or specialise hortator::ObjectTraits");
}

template <typename T>
void write_object(ObjectWriter& out, const T& value);
template <typename T>
void read_object(ObjectReader& in, T& value);

template <typename T>
concept Range = requires(T& whole, typename T::value_type element) {
  whole.clear();
  whole.insert(whole.end(), std::move(element));
};
template <typename T>
concept Map = Range<T> && requires {
  typename T::mapped_type;
};
template <typename T>
inline constexpr bool is_variant = false;
template <typename... T>
inline constexpr bool is_variant<std::variant<T...>> = true;

template <Range T>
void write_range(ObjectWriter& out, const T& whole) {
  out.write_size(whole.size());
  for (const auto& element : whole) write_object<typename T::value_type>(out, element);
}

template <Range T>
void read_range(ObjectReader& in, T& whole) {
  whole.clear();
  for (auto left = in.read_size(); left > 0; --left) {
    if constexpr (Map<T>) {
      std::pair<typename T::key_type, typename T::mapped_type> element{};
      read_object(in, element);
      whole.insert(whole.end(), std::move(element));
    } else {
      typename T::value_type element{};
      read_object(in, element);
      whole.insert(whole.end(), std::move(element));
    }
  }
}

template <typename... T>
void read_variant(ObjectReader& in, std::variant<T...>& value) {
  const auto index = in.read_size();
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    static_cast<void>(((i == index && (read_object(in, value.template emplace<i>()), true)) || ...));
  }
  (std::index_sequence_for<T...>{});
}

template <typename T>
void write_object(ObjectWriter& out, const T& value) {
  if constexpr (HasObjectTraits<T>) {
    ObjectTraits<T>::write(out, value);
  } else if constexpr (std::same_as<T, at::Tensor>) {
    out.write_tensor(value);
  } else if constexpr (std::same_as<T, std::string>) {
    out.write_text(value);
  } else if constexpr (Checkpointable<T>) {
    StateWriter state;
    value.save(state);
    out.write_state(state);
  } else if constexpr (HasCbor<T>) {
    write_object(out, T::to_cbor(value));
  } else if constexpr (is_variant<T>) {
    out.write_size(value.index());
    std::visit([&](const auto& held) { write_object(out, held); }, value);
  } else if constexpr (is_optional<T>) {
    out.write_plain(value.has_value());
    if (value) write_object(out, *value);
  } else if constexpr (Range<T>) {
    write_range(out, value);
  } else if constexpr (Structure<T>) {
    Parts<T>::visit(value, [&](const PartLabel&, const auto& part) { write_object(out, part); });
  } else {
    require_serializable<T>();
    out.write_plain(value);
  }
}

template <typename T>
void read_object(ObjectReader& in, T& value) {
  if constexpr (HasObjectTraits<T>) {
    ObjectTraits<T>::read(in, value);
  } else if constexpr (std::same_as<T, at::Tensor>) {
    value = in.read_tensor();
  } else if constexpr (std::same_as<T, std::string>) {
    value = in.read_text();
  } else if constexpr (Checkpointable<T>) {
    const StateReader state = in.read_state();
    value.load(state);
  } else if constexpr (HasCbor<T>) {
    std::vector<std::uint8_t> bytes;
    read_object(in, bytes);
    value = T::from_cbor(bytes);
  } else if constexpr (is_variant<T>) {
    read_variant(in, value);
  } else if constexpr (is_optional<T>) {
    bool has_value = false;
    in.read_plain(has_value);
    value.reset();
    if (has_value) read_object(in, value.emplace());
  } else if constexpr (Range<T>) {
    read_range(in, value);
  } else if constexpr (Structure<T>) {
    Parts<T>::visit(value, [&](const PartLabel&, auto& part) { read_object(in, part); });
  } else {
    require_serializable<T>();
    in.read_plain(value);
  }
}

template <typename T>
std::string encode(const T& value) {
  ObjectWriter out;
  write_object(out, value);
  return out.take();
}

HORTATOR_API void check_read_whole(const ObjectReader& in);

template <typename T>
void decode(std::string_view bytes, T& value) {
  ObjectReader in(bytes);
  read_object(in, value);
  check_read_whole(in);
}

}  // namespace detail
}  // namespace hortator
