#include "support/sim/operators/argument_key.hpp"

#include <array>

#include "support/sim/near.hpp"

namespace hortator::sim {
namespace {

template <typename Number>
void append(std::string& key, Number number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);  // NOLINT
}

template <typename List>
void append_list(std::string& key, char kind, const List& list) {
  key += kind;
  append(key, list.size());
  for (const auto number : list) append(key, number);
}

void append_tensor(std::string& key, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    key += 'u';
    return;
  }
  key += 't';
  append(key, tensor.scalar_type());
  append(key, tensor.unsafeGetTensorImpl()->is_wrapped_number());
  append_list(key, 's', tensor.sizes());
  append_list(key, 's', tensor.strides());
}

}  // namespace

bool append_key(std::string& key, const c10::IValue& argument) {
  if (argument.isNone()) {
    key += 'n';
  } else if (argument.isTensor()) {
    append_tensor(key, argument.toTensor());
  } else if (argument.isInt()) {
    append_list(key, 'i', std::array{argument.toInt()});
  } else if (argument.isDouble()) {
    append_list(key, 'd', std::array{argument.toDouble()});
  } else if (argument.isBool()) {
    key += argument.toBool() ? '1' : '0';
  } else if (argument.isDevice() || argument.isGenerator()) {
    key += 'D';
  } else if (argument.isString()) {
    key += argument.toStringRef() + '\0';
  } else if (argument.isIntList()) {
    append_list(key, 'l', argument.toIntVector());
  } else if (argument.isDoubleList()) {
    append_list(key, 'm', argument.toDoubleVector());
  } else if (argument.isBoolList()) {
    key += 'b';
    for (const bool bit : argument.toBoolList()) key += bit ? '1' : '0';
    key += '.';
  } else if (argument.isOptionalTensorList()) {  // where none is given matters
    key += '[';
    for (const auto& tensor : argument.toOptionalTensorVector()) append_tensor(key, tensor.value_or(at::Tensor()));
    key += ']';
  } else if (argument.isTensorList()) {
    key += '[';
    for_tensors(argument, [&](const at::Tensor& tensor) { append_tensor(key, tensor); });
    key += ']';
  } else {
    return false;
  }
  return true;
}

}  // namespace hortator::sim
