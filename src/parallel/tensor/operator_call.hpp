#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "parallel/tensor/divided_tensor.hpp"

namespace hortator::parallel {

/// One call of an operator that has a divided argument: its arguments, and the results that a rule gives it.
class OperatorCall {
 public:
  OperatorCall(const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : op_(op), stack_(stack), count_(op.schema().arguments().size()) {}

  const c10::FunctionSchema& schema() const { return op_.schema(); }
  const c10::OperatorHandle& op() const { return op_; }
  std::size_t count() const { return count_; }
  const c10::IValue& argument(std::size_t i) const { return torch::jit::peek(stack_, i, count_); }
  /// The position of an argument of this name.
  std::optional<std::size_t> find(std::string_view name) const;

  /// A tensor argument; undefined if it is absent.
  Operand operand(std::size_t i) const;
  /// An argument that is a list of tensors.
  std::vector<Operand> operands(std::size_t i) const;
  std::int64_t integer(std::size_t i) const { return integer_of(argument(i)); }
  std::optional<std::int64_t> optional_integer(std::size_t i) const;
  Sizes integers(std::size_t i) const;
  std::optional<Sizes> optional_integers(std::size_t i) const;
  bool flag(std::size_t i) const { return argument(i).toBool(); }
  std::optional<at::ScalarType> optional_type(std::size_t i) const { return argument(i).toOptional<at::ScalarType>(); }

  /// Replaces an argument.
  void set(std::size_t i, c10::IValue value) { torch::jit::peek(stack_, i, count_) = std::move(value); }
  /// Runs the operator on the arguments as they are now; its results take their position.
  void run() { op_.callBoxed(&stack_); }
  /// The only result of run().
  c10::IValue& result() { return stack_.back(); }
  /// The results of run().
  std::size_t results() const { return op_.schema().returns().size(); }
  c10::IValue& result(std::size_t i) { return torch::jit::peek(stack_, i, results()); }

  /// Ends the call with this result.
  void give(c10::IValue result);
  /// Ends the call with a tensor whose part is `part`.
  void give_divided(at::Tensor part, const Division& division, const SharedRanks& ranks) {
    give(divided_tensor(std::move(part), division, ranks));
  }
  /// Ends the call with an operand.
  void give_operand(Operand result) {
    if (result.division) return give_divided(std::move(result.tensor), *result.division, result.ranks);
    give(std::move(result.tensor));
  }

 private:
  static std::int64_t integer_of(const c10::IValue& value) {
    return value.isSymInt() ? value.toSymInt().expect_int() : value.toInt();
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  std::size_t count_;
};

/// Computes the result of an operator for divided arguments. False, without any change, if it cannot.
using OperatorRule = bool (*)(OperatorCall&);

/// The rule of an operator, by its name with overload ("aten::sum.dim_IntList"); null if it has none. The table is
/// rules/rule_table.cpp.
OperatorRule find_rule(const c10::OperatorHandle& op);

}  // namespace hortator::parallel
