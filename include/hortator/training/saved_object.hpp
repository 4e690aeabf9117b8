#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <hortator/detail/each_tensor.hpp>
#include <hortator/error.hpp>
#include <hortator/export.hpp>
#include <initializer_list>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace hortator {

class StateDict;

/// A value of a file that Python's torch.save writes and torch.load(weights_only=True) reads: nothing, a truth value, a
/// number, text, a tensor, a list, or a dict, nested as you like. Made of C++ values: `SavedObject::dict({{"epoch", 3},
/// {"scores", std::vector<double>{0.1, 0.2}}, {"weights", tensors_by_name}})`. Tuples become lists.
class HORTATOR_API SavedObject {
 public:
  using List = std::vector<SavedObject>;
  using Dict = std::vector<std::pair<SavedObject, SavedObject>>;  ///< in the file's order
  using Content = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, at::Tensor, List, Dict>;

  SavedObject() = default;  ///< Python's None
  SavedObject(Content content) : content_(std::move(content)) {}
  SavedObject(const char* text) : content_(std::string(text)) {}
  SavedObject(std::string_view text) : content_(std::string(text)) {}
  /// Holds a number, text, a tensor, an optional, a container, a map or a tuple of these.
  template <typename T>
  requires(!std::same_as<T, SavedObject> && !std::same_as<T, Content> && !std::same_as<T, StateDict>)
      SavedObject(const T& value)
      : content_(content_of(value)) {}
  static SavedObject dict(std::initializer_list<std::pair<SavedObject, SavedObject>> items) {
    return SavedObject(Content(Dict(items)));
  }

  const Content& content() const { return content_; }
  bool is_none() const { return std::holds_alternative<std::nullptr_t>(content_); }
  std::size_t size() const;  ///< of a list or a dict; others throw
  bool contains(std::string_view key) const;
  /// The value of a dict under a text, or of a list at a position. Throws UsageError if there is none.
  const SavedObject& at(std::string_view key) const;
  const SavedObject& at(std::size_t position) const;
  const SavedObject& operator[](std::string_view key) const { return at(key); }

  /// The value as a number, bool, text, tensor, List or Dict, or as a vector or a map from texts of these. Throws
  /// UsageError for a value of another kind, or a number that T cannot hold.
  template <typename T>
  T as() const {
    if constexpr (std::same_as<T, bool> || std::same_as<T, std::string> || std::same_as<T, at::Tensor> ||
                  std::same_as<T, List> || std::same_as<T, Dict>) {
      return get<T>();
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(real());
    } else if constexpr (std::integral<T>) {
      const auto number = get<std::int64_t>();
      if (!std::in_range<T>(number)) refuse("a number that fits");
      return static_cast<T>(number);
    } else if constexpr (detail::MapLike<T>) {
      T map;
      for (const auto& [key, value] : get<Dict>())
        map.emplace(key.template as<typename T::key_type>(), value.template as<typename T::mapped_type>());
      return map;
    } else {
      T list;
      for (const auto& item : get<List>()) list.push_back(item.template as<typename T::value_type>());
      return list;
    }
  }

 private:
  template <typename T>
  static Content content_of(const T& value) {
    if constexpr (std::same_as<T, at::Tensor>) {
      return value.defined() ? Content(value) : Content(nullptr);
    } else if constexpr (std::same_as<T, bool> || std::same_as<T, std::nullptr_t>) {
      return value;
    } else if constexpr (std::integral<T>) {
      return whole(std::in_range<std::int64_t>(value), static_cast<std::int64_t>(value));
    } else if constexpr (std::floating_point<T>) {
      return static_cast<double>(value);
    } else if constexpr (std::convertible_to<T, std::string_view>) {
      return std::string(std::string_view(value));
    } else if constexpr (detail::is_optional<T>) {
      return value ? content_of(*value) : Content(nullptr);
    } else if constexpr (detail::MapLike<T>) {
      Dict items;
      for (const auto& [key, part] : value) items.emplace_back(SavedObject(key), SavedObject(part));
      return items;
    } else if constexpr (std::ranges::input_range<const T>) {
      List items;
      for (const auto& part : value) items.emplace_back(static_cast<const std::ranges::range_value_t<T>&>(part));
      return items;
    } else {
      static_assert(detail::TupleLike<T>, "a SavedObject holds numbers, text, tensors, and containers of these");
      List items;
      std::apply([&](const auto&... parts) { (items.emplace_back(parts), ...); }, value);
      return items;
    }
  }
  static Content whole(bool fits, std::int64_t value);
  template <typename T>
  const T& get() const;
  double real() const;
  [[noreturn]] void refuse(const char* expected) const;

  Content content_ = nullptr;
};

/// Reads a file that torch.save or Accelerator::save() wrote, with all of its tensors; Hugging Face Accelerate's
/// load(). Nothing in it is executed: objects of other classes are an error that names the class. TorchFile reads
/// single tensors. Local.
HORTATOR_API SavedObject load(const std::filesystem::path& file);

}  // namespace hortator
