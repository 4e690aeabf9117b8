#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {

/// A tensor in a PyTorch file: a view of a storage. Several tensors may share a storage and overlap.
struct PickledTensor {
  TensorSpec spec = {};
  std::vector<std::int64_t> strides = {};
  std::int64_t first = 0;      ///< first element, in the storage
  std::string storage = {};    ///< the name of its record
  bool is_parameter = false;   ///< state_dict() turns parameters into plain tensors
  std::int64_t reach() const;  ///< number of elements of the storage that it spans, from `first`
  bool is_row_major() const;   ///< without gaps
};

/// A value in a PyTorch pickle. Other objects are refused or Foreign.
struct PickleValue {
  using List = std::vector<PickleValue>;
  using Dict = std::vector<std::pair<PickleValue, PickleValue>>;  ///< in Python's order
  struct Tuple {
    List items;
  };
  /// An object of an unknown class, which was not constructed: the arguments of its construction.
  struct Foreign {
    std::string name;  ///< "collections.Counter"
    List arguments;
  };
  /// A whole number beyond 64 bits.
  struct Huge {};

  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, PickledTensor, List, Tuple, Dict, Foreign, Huge>
      content = nullptr;

  /// "a tensor", "a list", "an object of collections.Counter": for errors.
  std::string described() const;
  /// The value of a dict for a string key; null if this is not a dict or has no such key.
  const PickleValue* find(std::string_view name) const;
};

}  // namespace hortator::formats
