#include "exported/graph/expression.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"
#include "exported/graph/whole_number.hpp"

namespace hortator::exported {

/// A parser of what SymPy's srepr() prints.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Expression all() {
    auto expression = one(0);
    if (at_ != text_.size()) fail("it has a remainder");
    return expression;
  }

 private:
  Expression one(int depth) {
    constexpr int max_depth = 64;
    if (depth > max_depth) fail("it is nested too deeply");
    Expression expression;
    expression.function_ = word();
    require('(');
    if (expression.function_ == "Symbol") {
      expression.symbol_ = quoted();
      skip_to_end();
    } else if (expression.function_ == "Integer") {
      expression.value_ = integer();
    } else if (expression.function_ == "Float" || expression.function_ == "Rational") {
      skip_to_end();  // never the size of a dimension: without a value
    } else {
      operands_of(expression, depth);
    }
    require(')');
    return expression;
  }

  void operands_of(Expression& expression, int depth) {
    while (at_ < text_.size() && text_[at_] != ')') {
      expression.operands_.push_back(one(depth + 1));
      skip(", ");
    }
  }

  std::string word() {
    const auto begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    if (at_ == begin) fail("a name is missing");
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    require('\'');
    const auto end = text_.find('\'', at_);
    if (end == std::string_view::npos) fail("a quote is missing");
    const auto content = std::string(text_.substr(at_, end - at_));
    at_ = end + 1;
    return content;
  }

  std::int64_t integer() {
    const auto end = text_.find(')', at_);
    long long value = 0;
    if (end == std::string_view::npos || !text::parse_integer(text_.substr(at_, end - at_), value))
      fail("a whole number is expected");
    at_ = end;
    return value;
  }

  void skip_to_end() { at_ = std::min(text_.find(')', at_), text_.size()); }
  void skip(std::string_view what) {
    if (text_.substr(at_).starts_with(what)) at_ += what.size();
  }
  void require(char what) {
    if (at_ == text_.size() || text_[at_] != what) fail(text::concat("expected '", what, "'"));
    ++at_;
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw ExportFault(text::concat(text::quote(text_.substr(0, 200)), " is not a valid expression: at character ",
                                   at_ + 1, " ", why));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

namespace {

using Number = WholeNumber;

Number combine(const std::string& function, std::int64_t a, std::int64_t b) {
  if (function == "Add") return add(a, b);
  if (function == "Mul") return multiply(a, b);
  if (function == "Max") return std::max(a, b);
  if (function == "Min") return std::min(a, b);
  if (function == "FloorDiv" || function == "CleanDiv") return floor_divide(a, b);
  if (function == "Mod" || function == "PythonMod") return modulo(a, b);
  if (function == "Pow" || function == "PowByNatural") return power(a, b);
  return {};
}

std::string_view sign_of(const std::string& function) {
  if (function == "Add") return " + ";
  if (function == "Mul") return "*";
  if (function == "FloorDiv" || function == "CleanDiv") return "//";
  return "";
}

}  // namespace

Expression Expression::parse(const std::string& text) { return ExpressionParser(text).all(); }

Expression Expression::number(std::int64_t value) {
  Expression expression;
  expression.value_ = value;
  return expression;
}

std::optional<std::int64_t> Expression::evaluate(const Symbols& symbols) const {
  if (is_number()) return value_;
  if (function_ == "Symbol") {
    const auto found = symbols.find(symbol_);
    return found == symbols.end() ? Number() : found->second;
  }
  Number result;
  for (const auto& operand : operands_) {
    const auto value = operand.evaluate(symbols);
    if (!value) return {};
    result = result ? combine(function_, *result, *value) : value;
    if (!result) return {};
  }
  return operands_.size() > 1 ? result : Number();
}

bool Expression::unify(std::int64_t value, Symbols& symbols) const {
  if (const auto known = evaluate(symbols)) return *known == value;
  if (is_symbol()) {
    symbols[symbol_] = value;
    return true;
  }
  return function_ == "Add" || function_ == "Mul" ? unify_operand(value, symbols) : true;
}

bool Expression::unify_operand(std::int64_t value, Symbols& symbols) const {
  const auto is_unknown = [&](const Expression& operand) { return !operand.evaluate(symbols); };
  if (std::ranges::count_if(operands_, is_unknown) != 1) return true;
  const bool is_sum = function_ == "Add";
  std::int64_t rest = is_sum ? 0 : 1;
  for (const auto& operand : operands_) {
    const auto known = operand.evaluate(symbols);
    if (!known) continue;
    const auto next = combine(function_, rest, *known);
    if (!next) return true;
    rest = *next;
  }
  std::int64_t remaining = 0;
  if (is_sum) {
    if (__builtin_sub_overflow(value, rest, &remaining)) return true;
  } else {
    if (rest == 0 || rest == -1) return true;
    if (value % rest != 0) return false;
    remaining = value / rest;
  }
  return std::ranges::find_if(operands_, is_unknown)->unify(remaining, symbols);
}

std::string Expression::to_string() const {
  if (is_symbol()) return symbol_;
  if (is_number()) return std::to_string(value_);
  const auto sign = sign_of(function_);
  std::vector<std::string> operands;
  for (const auto& operand : operands_) {
    const auto text = operand.to_string();
    operands.push_back(operand.function_ == "Add" && sign != " + " ? "(" + text + ")" : text);
  }
  if (!sign.empty()) return text::join(operands, sign);
  return text::concat(function_, "(", text::join(operands), ")");
}

}  // namespace hortator::exported
