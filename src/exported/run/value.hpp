#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exported/graph/program.hpp"

namespace hortator::exported {

/// The values of a graph while it runs, each in a slot.
struct Frame {
  std::vector<c10::IValue> slots;
  std::vector<c10::IValue> stack;  ///< arguments and results of the operator that is being called
  c10::Device device;              ///< where the model's parameters are
};

/// Slots of the names of a graph.
class Slots {
 public:
  std::size_t add(const std::string& name);         ///< throws ExportFault if the graph has it already
  std::size_t find(const std::string& name) const;  ///< throws ExportFault if the graph does not have it
  std::size_t size() const { return slots_.size(); }

 private:
  std::map<std::string, std::size_t, std::less<>> slots_;
};

/// An argument of an operator, prepared for calls: a constant, a slot of the frame, the model's device, or a list of
/// these.
class BoundValue {
 public:
  /// For a parameter of this type; a list of `length` equal elements where the type is such a list and the argument a
  /// single number. Throws ExportFault for an argument that the type does not allow.
  static BoundValue bind(const Argument& argument, const c10::TypePtr& type, const Slots& slots,
                         std::optional<std::int32_t> length = {});
  /// For an operator without a schema.
  static BoundValue bind(const Argument& argument, const Slots& slots);
  static BoundValue constant(c10::IValue value);

  c10::IValue get(const Frame& frame) const;

 private:
  enum class Kind { constant, slot, device, list };
  enum class Conversion { none, tensor, real };  ///< of a number in a slot: to a tensor without dimensions, to a float

  static BoundValue bind_list(const Argument::List& list, const c10::TypePtr& element, const Slots& slots);

  Kind kind_ = Kind::constant;
  c10::IValue constant_ = {};
  std::size_t slot_ = 0;
  Conversion conversion_ = Conversion::none;
  c10::TypePtr element_ = nullptr;      ///< of a list
  std::vector<BoundValue> items_ = {};  ///< of a list
};

}  // namespace hortator::exported
