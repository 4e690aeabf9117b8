#pragma once

#include <hortator/training/state_dict.hpp>
#include <string>
#include <utility>

#include "formats/tensor/tensor_spec.hpp"
#include "formats/torch/pickle/value.hpp"

/// Builds values of Python.
namespace hortator::accelerator {

/// A dict that is filled.
class PythonDict {
 public:
  template <typename Content>
  void put(const std::string& name, Content content) {
    put(name, formats::PickleValue{.content = std::move(content)});
  }
  void put(const std::string& name, formats::PickleValue value) {
    items_.emplace_back(formats::PickleValue{.content = name}, std::move(value));
  }
  void put(std::int64_t number, formats::PickleValue value) {
    items_.emplace_back(formats::PickleValue{.content = number}, std::move(value));
  }
  /// Puts a value under "outer/inner" into the dict "outer", which is made. Throws UsageError if a value has that name.
  void put_at(const std::string& path, formats::PickleValue value);

  formats::PickleValue value() && { return {.content = std::move(items_)}; }
  bool empty() const { return items_.empty(); }

 private:
  formats::PickleValue::Dict items_;
};

formats::PickleValue tuple_of(formats::PickleValue::List items);
/// A tensor whose storage has this name.
formats::PickleValue tensor_value(const std::string& storage, const formats::TensorSpec& spec);
/// A number or a text.
formats::PickleValue python_value(const StateDict::Value& value);

}  // namespace hortator::accelerator
