#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/error.hpp>
#include <hortator/export.hpp>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace hortator {

/// Named values of an object in a checkpoint: numbers, strings and tensors. Names may have folders: "group/value".
class HORTATOR_API StateDict {
 public:
  using Value = std::variant<std::int64_t, double, std::string, at::Tensor>;

  /// Stores a number of any type, bool, text or tensor. Replaces the value of the same name.
  template <typename T>
  void put(const std::string& name, const T& value) {
    put_value(name, to_value(value));
  }

  /// Returns the value of `name` as a T. Throws, naming it, if it is missing, has another type or is too large for T.
  template <typename T>
  T get(const std::string& name) const {
    if constexpr (std::is_same_v<T, at::Tensor> || std::is_same_v<T, std::string>) {
      return get_as<T>(name);
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(get_as<double>(name));
    } else {
      static_assert(std::is_integral_v<T>, "a StateDict holds numbers, bool, std::string and tensors");
      if constexpr (sizeof(T) == sizeof(std::int64_t)) {
        return static_cast<T>(get_as<std::int64_t>(name));  // restores unsigned values bit for bit
      } else {
        return static_cast<T>(get_integer(name, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
      }
    }
  }

  bool contains(const std::string& name) const { return values_.contains(name); }
  bool empty() const { return values_.empty(); }
  const std::map<std::string, Value>& values() const& { return values_; }
  const std::map<std::string, Value>& values() const&& =
      delete;  // a loop over a temporary's values would read freed memory

  /// Stores all values of `part` under "prefix/".
  void put_all(const std::string& prefix, const StateDict& part);
  /// The values whose names begin with "prefix/", without the prefix.
  StateDict under(const std::string& prefix) const;

 private:
  template <typename T>
  static Value to_value(const T& value) {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      return value;
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<double>(value);
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<std::int64_t>(value);
    } else {
      static_assert(std::is_convertible_v<T, std::string_view>, "a StateDict holds numbers, bool, text and tensors");
      return std::string(std::string_view(value));
    }
  }
  void put_value(const std::string& name, Value value);
  template <typename T>
  T get_as(const std::string& name) const;
  std::int64_t get_integer(const std::string& name, std::int64_t min, std::int64_t max) const;

  std::map<std::string, Value> values_;
};

/// What your objects are saved into and loaded from.
using StateWriter = StateDict;
using StateReader = StateDict;

}  // namespace hortator
