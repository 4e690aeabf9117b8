#include "exported/run/value.hpp"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"

namespace hortator::exported {
namespace {

using c10::TypeKind;

/// A number where an operator takes a tensor: it does not decide about the type of the result.
at::Tensor wrapped(const at::Scalar& number) {
  auto tensor = at::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

/// The value of a constant argument, for an operator that does not describe its parameters.
c10::IValue plain_value(const Argument& argument) {
  return std::visit(
      []<typename T>(const T& content) -> c10::IValue {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return {};
        } else if constexpr (std::is_same_v<T, Reference> || std::is_same_v<T, Argument::List> ||
                             std::is_same_v<T, std::shared_ptr<const Graph>>) {
          throw ExportFault("an argument is a list or a graph, and a single value is expected");
        } else {
          return c10::IValue(content);
        }
      },
      argument.content);
}

[[noreturn]] void refuse_type(const c10::TypePtr& type) {
  throw ExportFault(text::concat("an argument does not fit a parameter of type ", type->str()));
}

/// A constant that an operator takes for a parameter of this type.
c10::IValue converted(const c10::IValue& value, const c10::TypePtr& type) {
  switch (type->kind()) {
    case TypeKind::TensorType:
      if (value.isNone()) return at::Tensor();
      if (value.isScalar()) return wrapped(value.toScalar());
      break;
    case TypeKind::FloatType:
      if (value.isInt()) return static_cast<double>(value.toInt());
      if (value.isDouble()) return value;
      break;
    case TypeKind::IntType:
      if (value.isBool()) return static_cast<std::int64_t>(value.toBool());
      if (value.isInt()) return value;
      break;
    case TypeKind::BoolType:
      if (value.isBool()) return value;
      break;
    case TypeKind::NumberType:
      if (value.isScalar()) return value;
      break;
    case TypeKind::StringType:
      if (value.isString()) return value;
      break;
    case TypeKind::DeviceObjType:
      if (value.isDevice()) return value;
      break;
    default:
      break;
  }
  refuse_type(type);
}

c10::IValue list_value(const c10::TypePtr& element, std::vector<c10::IValue> items) {
  c10::impl::GenericList list(element);
  list.reserve(items.size());
  for (auto& item : items) list.push_back(std::move(item));
  return list;
}

}  // namespace

std::size_t Slots::add(const std::string& name) {
  const auto [place, is_new] = slots_.emplace(name, slots_.size());
  if (!is_new) throw ExportFault(text::concat("the graph has two values named ", text::quote(name)));
  return place->second;
}

std::size_t Slots::find(const std::string& name) const {
  const auto found = slots_.find(name);
  if (found == slots_.end())
    throw ExportFault(text::concat("the graph has no value ", text::quote(name), " at this point"));
  return found->second;
}

BoundValue BoundValue::constant(c10::IValue value) {
  BoundValue bound;
  bound.constant_ = std::move(value);
  return bound;
}

BoundValue BoundValue::bind(const Argument& argument, const c10::TypePtr& type, const Slots& slots,
                            std::optional<std::int32_t> length) {
  if (const auto optional = type->cast<c10::OptionalType>())
    return argument.is_none() ? constant({}) : bind(argument, optional->getElementType(), slots, length);
  if (const auto list_type = type->cast<c10::ListType>()) {
    const auto element = list_type->getElementType();
    if (const auto* list = std::get_if<Argument::List>(&argument.content)) return bind_list(*list, element, slots);
    if (!length) refuse_type(type);
    return bind_list(Argument::List(static_cast<std::size_t>(*length), argument), element, slots);
  }
  BoundValue bound;
  if (const auto* reference = std::get_if<Reference>(&argument.content)) {
    bound.kind_ = Kind::slot;
    bound.slot_ = slots.find(reference->name);
    if (type->kind() == TypeKind::TensorType) bound.conversion_ = Conversion::tensor;
    if (type->kind() == TypeKind::FloatType) bound.conversion_ = Conversion::real;
  } else if (std::holds_alternative<c10::Device>(argument.content)) {
    if (type->kind() != TypeKind::DeviceObjType) refuse_type(type);
    bound.kind_ = Kind::device;
  } else {
    bound.constant_ = converted(plain_value(argument), type);
  }
  return bound;
}

BoundValue BoundValue::bind(const Argument& argument, const Slots& slots) {
  BoundValue bound;
  if (const auto* reference = std::get_if<Reference>(&argument.content)) {
    bound.kind_ = Kind::slot;
    bound.slot_ = slots.find(reference->name);
  } else if (const auto* list = std::get_if<Argument::List>(&argument.content)) {
    bound.kind_ = Kind::list;
    bound.element_ = c10::AnyType::get();
    for (const auto& item : *list) bound.items_.push_back(bind(item, slots));
  } else {
    bound.constant_ = plain_value(argument);
  }
  return bound;
}

BoundValue BoundValue::bind_list(const Argument::List& list, const c10::TypePtr& element, const Slots& slots) {
  BoundValue bound;
  for (const auto& item : list) bound.items_.push_back(bind(item, element, slots));
  bound.element_ = element;
  const auto is_constant = [](const BoundValue& item) { return item.kind_ == Kind::constant; };
  if (!std::ranges::all_of(bound.items_, is_constant)) {
    bound.kind_ = Kind::list;
    return bound;
  }
  std::vector<c10::IValue> items;
  for (auto& item : bound.items_) items.push_back(std::move(item.constant_));
  return constant(list_value(element, std::move(items)));
}

c10::IValue BoundValue::get(const Frame& frame) const {
  if (kind_ == Kind::constant) return constant_;
  if (kind_ == Kind::device) return frame.device;
  if (kind_ == Kind::list) {
    std::vector<c10::IValue> items;
    items.reserve(items_.size());
    for (const auto& item : items_) items.push_back(item.get(frame));
    return list_value(element_, std::move(items));
  }
  const auto& value = frame.slots[slot_];
  if (conversion_ == Conversion::tensor && !value.isTensor() && !value.isNone()) return wrapped(value.toScalar());
  if (conversion_ == Conversion::real && value.isInt()) return static_cast<double>(value.toInt());
  return value;
}

}  // namespace hortator::exported
