#include "parallel/tensor/operator_call.hpp"

#include <algorithm>

namespace hortator::parallel {

std::optional<std::size_t> OperatorCall::find(std::string_view name) const {
  const auto& arguments = schema().arguments();
  const auto found = std::ranges::find_if(arguments, [&](const auto& one) { return one.name() == name; });
  if (found == arguments.end()) return {};
  return static_cast<std::size_t>(found - arguments.begin());
}

Operand OperatorCall::operand(std::size_t i) const {
  const auto& value = argument(i);
  return value.isTensor() && value.toTensor().defined() ? operand_of(value.toTensor()) : Operand{};
}

std::vector<Operand> OperatorCall::operands(std::size_t i) const {
  std::vector<Operand> all;
  for (const c10::IValue& one : argument(i).toListRef()) all.push_back(operand_of(one.toTensor()));
  return all;
}

std::optional<std::int64_t> OperatorCall::optional_integer(std::size_t i) const {
  return argument(i).isNone() ? std::nullopt : std::optional(integer(i));
}

Sizes OperatorCall::integers(std::size_t i) const {
  if (!argument(i).isList()) return {integer(i)};
  Sizes all;
  for (const c10::IValue& one : argument(i).toListRef()) all.push_back(integer_of(one));
  return all;
}

std::optional<Sizes> OperatorCall::optional_integers(std::size_t i) const {
  return argument(i).isNone() ? std::nullopt : std::optional(integers(i));
}

void OperatorCall::give(c10::IValue result) {
  torch::jit::drop(stack_, count_);
  stack_.push_back(std::move(result));
}

}  // namespace hortator::parallel
