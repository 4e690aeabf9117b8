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

/// A tensor in a PyTorch file: which elements of which storage. Several may have one storage, and overlap.
struct PickledTensor {
  TensorSpec spec = {};
  std::vector<std::int64_t> strides = {};
  std::int64_t first = 0;      ///< element of the storage
  std::string storage = {};    ///< the name of its record
  bool is_parameter = false;   ///< else a tensor without a role: state_dict() makes these of parameters, too
  std::int64_t reach() const;  ///< so many elements of the storage it spans, from `first` on
};

/// What a pickle of PyTorch's may hold. All else was refused, or is a Foreign.
struct PickleValue {
  using List = std::vector<PickleValue>;
  using Dict = std::vector<std::pair<PickleValue, PickleValue>>;  ///< in the order in which Python had them
  struct Tuple {
    List items;
  };
  /// An object of a class that this reader does not know, kept unmade: what it would have been made from.
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
  /// The value of a dict under a text; null where this is no dict, or has none.
  const PickleValue* find(std::string_view name) const;
};

}  // namespace hortator::formats
