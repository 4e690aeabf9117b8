#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"
#include "exported/graph/whole_number.hpp"
#include "exported/run/results.hpp"
#include "exported/run/step.hpp"

/// Python's functions of numbers, with Python's results.
namespace hortator::exported {
namespace {

using Numbers = std::vector<c10::IValue>;
using Function = std::function<c10::IValue(const Numbers&)>;

bool is_whole(const c10::IValue& value) { return value.isInt() || value.isBool(); }
std::int64_t whole(const c10::IValue& value) {
  return value.isBool() ? static_cast<std::int64_t>(value.toBool()) : value.toInt();
}
double real(const c10::IValue& value) {
  return value.isDouble() ? value.toDouble() : static_cast<double>(whole(value));
}
bool truth(const c10::IValue& value) { return real(value) != 0; }

/// An operation on whole numbers that throws instead of returning nothing.
template <WholeNumber (*operation)(std::int64_t, std::int64_t)>
std::int64_t checked(std::int64_t a, std::int64_t b) {
  const auto result = operation(a, b);
  if (!result) throw ExportFault("a size does not fit into 64 bits");
  return *result;
}

template <WholeNumber (*operation)(std::int64_t, std::int64_t)>
std::int64_t divided(std::int64_t a, std::int64_t b) {
  if (b == 0) throw ExportFault("a size is divided by 0");
  return checked<operation>(a, b);
}

c10::IValue raised(const Numbers& numbers) {
  if (!is_whole(numbers[0]) || !is_whole(numbers[1]) || whole(numbers[1]) < 0)
    return std::pow(real(numbers[0]), real(numbers[1]));
  return checked<power>(whole(numbers[0]), whole(numbers[1]));
}

/// A function of whole numbers, and of floats where one of them is one.
template <typename OfWhole, typename OfReal>
Function arithmetic(OfWhole of_whole, OfReal of_real) {
  return [=](const Numbers& numbers) -> c10::IValue {
    if (is_whole(numbers[0]) && is_whole(numbers[1])) return of_whole(whole(numbers[0]), whole(numbers[1]));
    return of_real(real(numbers[0]), real(numbers[1]));
  };
}

template <typename Compare>
Function comparison(Compare compare) {
  return arithmetic(compare, compare);
}

/// To a whole number, by one of the ways to round.
Function rounding(double (*round)(double)) {
  return [round](const Numbers& numbers) -> c10::IValue {
    if (is_whole(numbers[0])) return whole(numbers[0]);
    const auto value = round(numbers[0].toDouble());
    constexpr double limit = 9.2e18;
    if (!(std::abs(value) < limit)) throw ExportFault("a size does not fit into 64 bits");
    return static_cast<std::int64_t>(value);
  };
}

c10::IValue negative(const Numbers& numbers) {
  return is_whole(numbers[0]) ? c10::IValue(checked<subtract>(0, whole(numbers[0])))
                              : c10::IValue(-numbers[0].toDouble());
}

/// `a and b` of two booleans, `a & b` of whole numbers.
template <typename Combine>
Function bitwise(Combine combine) {
  return [combine](const Numbers& numbers) -> c10::IValue {
    const auto bits = combine(whole(numbers[0]), whole(numbers[1]));
    return numbers[0].isBool() && numbers[1].isBool() ? c10::IValue(bits != 0) : c10::IValue(bits);
  };
}

c10::IValue shifted(const Numbers& numbers, bool left) {
  constexpr std::int64_t bits = 63;
  const auto by = whole(numbers[1]);
  if (by < 0 || by >= bits) throw ExportFault("a size is shifted by an impossible number of bits");
  return left ? checked<multiply>(whole(numbers[0]), std::int64_t{1} << by) : whole(numbers[0]) >> by;
}

c10::IValue sum_of_list(const Numbers& numbers) {
  std::int64_t sum = 0;
  for (const auto& item : numbers[0].toListRef()) sum = checked<add>(sum, whole(item));
  return sum;
}

struct NumberFunction {
  std::size_t operands;
  Function function;
};

std::map<std::string, NumberFunction, std::less<>> arithmetic_functions() {
  const auto smaller = [](auto a, auto b) { return b < a ? b : a; };
  const auto larger = [](auto a, auto b) { return b > a ? b : a; };
  return {
      {"_operator.add", {2, arithmetic(checked<add>, std::plus<double>())}},
      {"_operator.sub", {2, arithmetic(checked<subtract>, std::minus<double>())}},
      {"_operator.mul", {2, arithmetic(checked<multiply>, std::multiplies<double>())}},
      {"_operator.floordiv",
       {2, arithmetic(divided<floor_divide>, [](double a, double b) { return std::floor(a / b); })}},
      {"_operator.mod", {2, arithmetic(divided<modulo>, [](double a, double b) { return a - std::floor(a / b) * b; })}},
      {"_operator.pow", {2, raised}},
      {"_operator.truediv", {2, [](const Numbers& numbers) { return real(numbers[0]) / real(numbers[1]); }}},
      {"_operator.neg", {1, negative}},
      {"_operator.pos", {1, [](const Numbers& numbers) { return numbers[0]; }}},
      {"_operator.lshift", {2, [](const Numbers& numbers) { return shifted(numbers, true); }}},
      {"_operator.rshift", {2, [](const Numbers& numbers) { return shifted(numbers, false); }}},
      {"torch.sym_min", {2, arithmetic(smaller, smaller)}},
      {"torch.sym_max", {2, arithmetic(larger, larger)}},
      {"torch.sym_sum", {1, sum_of_list}}};
}

std::map<std::string, NumberFunction, std::less<>> other_functions() {
  const auto root = [](const Numbers& numbers) { return std::sqrt(real(numbers[0])); };
  return {{"_operator.eq", {2, comparison(std::equal_to<>())}},
          {"_operator.ne", {2, comparison(std::not_equal_to<>())}},
          {"_operator.le", {2, comparison(std::less_equal<>())}},
          {"_operator.ge", {2, comparison(std::greater_equal<>())}},
          {"_operator.lt", {2, comparison(std::less<>())}},
          {"_operator.gt", {2, comparison(std::greater<>())}},
          {"_operator.and_", {2, bitwise(std::bit_and<>())}},
          {"_operator.or_", {2, bitwise(std::bit_or<>())}},
          {"torch.sym_not", {1, [](const Numbers& numbers) { return !truth(numbers[0]); }}},
          {"torch.sym_ite", {3, [](const Numbers& numbers) { return truth(numbers[0]) ? numbers[1] : numbers[2]; }}},
          {"torch.sym_int", {1, rounding(std::trunc)}},
          {"math.trunc", {1, rounding(std::trunc)}},
          {"math.floor", {1, rounding(std::floor)}},
          {"math.ceil", {1, rounding(std::ceil)}},
          {"torch.sym_float", {1, [](const Numbers& numbers) { return real(numbers[0]); }}},
          {"torch.sym_sqrt", {1, root}},
          {"torch._sym_sqrt", {1, root}}};
}

const std::map<std::string, NumberFunction, std::less<>>& number_functions() {
  static const auto functions = [] {
    auto all = arithmetic_functions();
    all.merge(other_functions());
    return all;
  }();
  return functions;
}

class NumberStep final : public Step {
 public:
  NumberStep(const Node& node, const NumberFunction& called, Slots& slots) : function_(called.function) {
    for (const auto& input : node.inputs) operands_.push_back(BoundValue::bind(input.value, slots));
    if (operands_.size() != called.operands) {
      throw ExportFault(text::concat("expected ", text::count(static_cast<long long>(called.operands), "operand"),
                                     ", got ", operands_.size()));
    }
    results_.emplace(node.outputs, slots);
    if (results_->size() > 1) throw ExportFault("it has several results, and the function has one");
  }

  void run(Frame& frame) const override {
    Numbers numbers;
    numbers.reserve(operands_.size());
    for (const auto& operand : operands_) {
      auto value = operand.get(frame);
      if (value.isTensor()) value = value.toTensor().item();
      numbers.push_back(std::move(value));
    }
    if (results_->size() == 1) results_->store(0, function_(numbers), frame);
  }

 private:
  const Function& function_;
  std::vector<BoundValue> operands_;
  std::optional<Results> results_;
};

}  // namespace

std::unique_ptr<Step> number_step(const Node& node, Slots& slots) {
  const auto found = number_functions().find(node.target);
  if (found == number_functions().end()) return nullptr;
  return std::make_unique<NumberStep>(node, found->second, slots);
}

}  // namespace hortator::exported
