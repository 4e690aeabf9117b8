#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hortator::exported {

/// Values of symbols, such as "s0", which stands for a size that may differ from call to call.
using Symbols = std::map<std::string, std::int64_t, std::less<>>;

/// A size as the exporter writes it: an expression of SymPy over whole numbers and symbols.
class Expression {
 public:
  /// "Add(Symbol('s0', integer=True), Integer(1))". Throws ExportFault if the text is not an expression.
  static Expression parse(const std::string& text);
  static Expression number(std::int64_t value);

  /// The value; nothing if a symbol has none, or if a function is not known or overflows.
  std::optional<std::int64_t> evaluate(const Symbols& symbols) const;
  /// Whether the expression can have this value. Gives a value to the symbol that is still without one, if a sum or a
  /// product determines it. True where neither can be found out.
  bool unify(std::int64_t value, Symbols& symbols) const;
  /// "2*s0 + 1"
  std::string to_string() const;
  bool is_symbol() const { return function_ == "Symbol"; }
  bool is_number() const { return function_ == "Integer"; }

 private:
  friend class ExpressionParser;
  bool unify_operand(std::int64_t value, Symbols& symbols) const;

  std::string function_ = "Integer";  ///< "Symbol", "Integer", or that which has the operands
  std::string symbol_ = {};
  std::int64_t value_ = 0;  ///< of an Integer
  std::vector<Expression> operands_ = {};
};

}  // namespace hortator::exported
