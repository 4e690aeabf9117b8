#pragma once

#include <torch/data/example.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hortator {

namespace detail {
template <typename T>
inline constexpr bool is_tie = false;
template <typename... Parts>
inline constexpr bool is_tie<std::tuple<Parts&...>> = true;
template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;
}  // namespace detail

/// A struct that lists its parts for the library: `auto fields() { return std::tie(logits, labels); }`
template <typename T>
concept HasFields = requires(T& whole) {
  requires detail::is_tie<decltype(whole.fields())>;
};

/// The parts of standard containers, examples and structs with fields().
namespace detail {

/// A part's label within its whole: a name, a key or a number.
struct PartLabel {
  std::string_view name = {};
  std::string_view key = {};
  long long number = -1;

  std::string text() const {
    if (!name.empty()) return std::string(".").append(name);
    const bool is_number = number >= 0 || key.data() == nullptr;
    return is_number ? std::string("[").append(std::to_string(number)).append("]")
                     : std::string("['").append(key).append("']");
  }
};

inline PartLabel label_of(const std::string& key) { return {.key = key}; }
template <std::integral Key>
PartLabel label_of(Key key) {
  return {.number = static_cast<long long>(key)};
}

/// Defined for types that have parts. `Types` is a tuple of the parts' types; `visit(whole, see)` calls
/// see(PartLabel, part) for each part, in an order that is the same on all ranks.
template <typename T>
struct Parts;

template <typename T>
concept Structure = requires {
  typename Parts<T>::Types;
};

template <typename Tuple, typename See>
void visit_in_turn(Tuple&& parts, See&& see) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (see(PartLabel{.number = static_cast<long long>(i)}, std::get<i>(parts)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<Tuple>>>{});
}

template <typename Whole, typename See>
void visit_items(Whole& whole, See&& see) {
  long long number = 0;
  for (auto& part : whole) see(PartLabel{.number = number++}, part);
}

template <typename... Types_>
struct Parts<std::tuple<Types_...>> {
  using Types = std::tuple<Types_...>;
  static void visit(auto& whole, auto&& see) { visit_in_turn(whole, see); }
};

template <typename First, typename Second>
struct Parts<std::pair<First, Second>> {
  using Types = std::tuple<First, Second>;
  static void visit(auto& whole, auto&& see) {
    see(PartLabel{.name = "first"}, whole.first);
    see(PartLabel{.name = "second"}, whole.second);
  }
};

template <typename Data, typename Target>
struct Parts<torch::data::Example<Data, Target>> {
  using Types = std::tuple<Data, Target>;
  static void visit(auto& whole, auto&& see) {
    see(PartLabel{.name = "data"}, whole.data);
    see(PartLabel{.name = "target"}, whole.target);
  }
};
template <typename Data>
struct Parts<torch::data::Example<Data, void>> {
  using Types = std::tuple<Data>;
  static void visit(auto& whole, auto&& see) { see(PartLabel{.name = "data"}, whole.data); }
};

template <HasFields T>
struct Parts<T> {
  template <typename Tie>
  struct Untie;
  template <typename... Fields>
  struct Untie<std::tuple<Fields&...>> {
    using Types = std::tuple<std::remove_const_t<Fields>...>;
  };
  using Types = typename Untie<decltype(std::declval<T&>().fields())>::Types;
  // Visitors that only read pass a const struct, whose fields() need not be const.
  static void visit(auto& whole, auto&& see) { visit_in_turn(const_cast<T&>(whole).fields(), see); }
};

template <typename T>
requires(!std::same_as<T, bool>)  // the elements of std::vector<bool> are no objects
    struct Parts<std::vector<T>> {
  using Types = std::tuple<T>;
  static void visit(auto& whole, auto&& see) { visit_items(whole, see); }
};

template <typename T, std::size_t size>
struct Parts<std::array<T, size>> {
  using Types = std::tuple<T>;
  static void visit(auto& whole, auto&& see) { visit_items(whole, see); }
};

template <typename T>
struct Parts<std::optional<T>> {
  using Types = std::tuple<T>;
  static void visit(auto& whole, auto&& see) {
    if (whole) see(PartLabel{.name = "value"}, *whole);
  }
};

template <typename Key>
concept PartKey = std::integral<Key> || std::same_as<Key, std::string>;

template <PartKey Key, typename T, typename... More>
struct Parts<std::map<Key, T, More...>> {
  using Types = std::tuple<T>;
  static void visit(auto& whole, auto&& see) {
    for (auto& [key, part] : whole) see(label_of(key), part);
  }
};

template <PartKey Key, typename T, typename... More>
struct Parts<std::unordered_map<Key, T, More...>> {
  using Types = std::tuple<T>;
  static void visit(auto& whole, auto&& see) {
    std::vector<decltype(&*whole.begin())> sorted;
    for (auto& item : whole) sorted.push_back(&item);
    std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->first < b->first; });
    for (auto* item : sorted) see(label_of(item->first), item->second);
  }
};

}  // namespace detail
}  // namespace hortator
