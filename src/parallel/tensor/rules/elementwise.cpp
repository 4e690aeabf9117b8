// Operators that compute each element from the elements at the same position.

#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"
#include "parallel/tensor/divided_random.hpp"
#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

struct OperandOfCall {
  std::size_t position;
  Operand operand;
};

std::vector<OperandOfCall> tensors_of(const OperatorCall& call) {
  std::vector<OperandOfCall> all;
  for (std::size_t i = 0; i < call.count(); ++i) {
    if (auto operand = call.operand(i); operand.tensor.defined()) all.push_back({i, std::move(operand)});
  }
  return all;
}

/// The argument that is written, if it is only the first.
enum class Written { nothing, first, other };
Written written_by(const c10::FunctionSchema& schema) {
  auto written = Written::nothing;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    if (i > 0) return Written::other;
    written = Written::first;
  }
  return written;
}

/// Whether the operator has finite values and derivatives at 0, so that padding cannot spoil gradients: 0 times
/// infinity is not a number.
bool keeps_padding_harmless(const OperatorCall& call) {
  static const std::set<std::string_view> names = {
      "aten::add",     "aten::add_",     "aten::sub",     "aten::sub_",  "aten::mul",      "aten::mul_",
      "aten::neg",     "aten::tanh",     "aten::clone",   "aten::copy_", "aten::detach",   "aten::alias",
      "aten::dropout", "aten::_to_copy", "aten::normal_", "aten::zero_", "aten::uniform_", "aten::zeros_like"};
  const std::string_view name = call.op().operator_name().name;
  if (names.contains(name)) return true;
  const bool divides_by = name == "aten::div" || name == "aten::div_";
  const auto divisor = divides_by ? call.operand(1) : Operand();
  return divides_by && (!divisor.tensor.defined() || (!divisor.is_divided() && divisor.dims() == 0));  // a temperature
}

/// Throws where a tensor has the sizes of one rank's part of `model`: a moment that an optimizer has made of a divided
/// parameter is divided, and its gradient is a part.
void refuse_part(const OperatorCall& call, const Operand& operand, const Operand& model, std::int64_t dims) {
  const auto dim = aligned(model, dims)->dim - (dims - operand.dims());
  if (operand.is_divided() || dim < 0 || operand.tensor.size(dim) == 1) return;
  if (operand.tensor.size(dim) != model.tensor.size(model.division->dim)) return;
  throw UsageError(
      {.what = text::concat(toString(call.op().operator_name()), " got one rank's part, of the sizes [",
                            text::join(operand.tensor.sizes()), "], beside a tensor that is divided: ", model.text()),
       .why = "with parallel.tensor or parallel.experts gradients are parts, and moments that an optimizer makes past "
              "its handle are not",
       .hint = "call step() of the optimizer that prepare() has returned"});
}

/// A whole tensor as it meets a parameter that is changed in place: its part, unless it has a part's size already.
at::Tensor beside_parameter(const Operand& operand, const Operand& parameter, std::int64_t dims) {
  const auto dim = parameter.division->dim - (dims - operand.dims());
  if (!operand.is_divided() && dim >= 0 && operand.tensor.size(dim) == parameter.tensor.size(parameter.division->dim))
    return operand.tensor;
  return beside(operand, *aligned(parameter, dims), dims, parameter.ranks);
}

}  // namespace

std::optional<Division> aligned(const Operand& operand, std::int64_t dims) {
  if (!operand.division) return {};
  return operand.division->along(operand.division->dim + dims - operand.dims());
}

at::Tensor beside(const Operand& operand, const Division& division, std::int64_t dims, const SharedRanks& ranks) {
  if (!operand.tensor.defined()) return operand.tensor;
  const auto own = division.along(division.dim - (dims - operand.dims()));
  if (operand.division == own) return operand.tensor;
  const auto whole = operand.whole();
  if (own.dim < 0 || whole.size(own.dim) == 1) return spread(whole, ranks);
  return part_of(whole, own, ranks);
}

Operand plus(const Operand& a, const Operand& b) {
  const auto dims = std::max(a.dims(), b.dims());
  const auto& divided = a.is_divided() ? a : b;
  if (!divided.is_divided()) return {.tensor = a.tensor + b.tensor};
  const auto division = *aligned(divided, dims);
  return {.tensor = beside(a, division, dims, divided.ranks) + beside(b, division, dims, divided.ranks),
          .division = division,
          .ranks = divided.ranks};
}

bool elementwise(OperatorCall& call) {
  const auto written = written_by(call.schema());
  const auto operands = tensors_of(call);
  const auto is_divided = [](const OperandOfCall& one) { return one.operand.is_divided(); };
  const auto chosen = std::ranges::find_if(operands, is_divided);
  if (chosen == operands.end() || written == Written::other || call.results() != 1) return false;
  if (written == Written::first && chosen->position != 0) return false;
  std::int64_t dims = 0;
  for (const auto& one : operands) dims = std::max(dims, one.operand.dims());
  const auto& model = chosen->operand;
  const auto division = *aligned(model, dims);
  if (division.padding > 0 && !keeps_padding_harmless(call)) return false;
  const auto self = call.argument(0);
  const bool in_parameter = written == Written::first && is_divided_parameter(self.toTensor());
  for (const auto& [position, operand] : operands) {
    if (!in_parameter) refuse_part(call, operand, model, dims);
    call.set(position,
             in_parameter ? beside_parameter(operand, model, dims) : beside(operand, division, dims, model.ranks));
  }
  const auto ranks = model.ranks;
  {
    std::optional<DividedRandom> random;
    if (call.op().hasTag(at::Tag::nondeterministic_seeded)) random.emplace(model.tensor.device(), *ranks);
    call.run();
  }
  if (written == Written::first) {
    follow_part(self.toTensor(), model.tensor);
    call.result() = self;
  } else {
    call.result() = divided_tensor(std::move(call.result()).toTensor(), division, ranks);
  }
  return true;
}

// Random values of a parameter are those that a whole one would get.
bool fill_parameter(OperatorCall& call) {
  const auto self = call.argument(0).toTensor();
  if (!is_divided_parameter(self)) return elementwise(call);
  const auto operand = call.operand(0);
  const auto whole = at::empty(operand.whole_sizes(), operand.tensor.options());
  call.set(0, whole);
  call.run();
  operand.tensor.copy_(operand.ranks->part_of(whole, *operand.division));
  call.result() = self;
  return true;
}

}  // namespace hortator::parallel::rules
