#include "models/chat/expressions.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::models::chat {
namespace {

bool compared(const std::string& op, const Value& a, const Value& b) {
  if (op == "==") return equal(a, b);
  if (op == "!=") return !equal(a, b);
  if (op == "<") return less(a, b);
  if (op == ">") return less(b, a);
  if (op == "<=") return !less(b, a);
  return !less(a, b);
}

Value number_of(std::string text) {
  std::erase(text, '_');
  if (text.find('.') == std::string::npos) {
    std::int64_t number = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end.ec != std::errc()) fail(text::concat("the number ", text, " is too large"));
    return Json(number);
  }
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return Json(number);
}

}  // namespace

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  constexpr std::size_t deepest = 100;
  if (++parser_.depth_ > deepest) parser_.refuse("expressions are nested too deeply");
}

void ExpressionParser::link() {
  constexpr std::size_t max_links = 200;
  if (++links_ > max_links) refuse("the expression is too long");
}

CallArguments ExpressionParser::CallExpressions::values(Rendering& rendering) const {
  CallArguments arguments;
  for (const auto& one : positional) arguments.positional.push_back(one(rendering));
  for (const auto& [name, one] : named) {
    arguments.named[name] = one(rendering);
    arguments.order.push_back(name);
  }
  return arguments;
}

TemplateToken ExpressionParser::next() {
  auto token = peek();
  if (token.kind != TokenKind::end) ++at_;
  return token;
}

bool ExpressionParser::take_name(std::string_view text) {
  const bool found = is_name(text);
  if (found) ++at_;
  return found;
}

bool ExpressionParser::take_op(std::string_view text) {
  const bool found = is_op(text);
  if (found) ++at_;
  return found;
}

void ExpressionParser::require_op(std::string_view text) {
  if (!take_op(text)) refuse(text::concat("expected '", text, "'"));
}

void ExpressionParser::require_name(std::string_view text) {
  if (!take_name(text)) refuse(text::concat("expected '", text, "'"));
}

void ExpressionParser::require_end() {
  if (!is_at_end()) refuse(text::concat("unexpected ", text::quote(peek().text)));
}

std::string ExpressionParser::name() {
  if (peek().kind != TokenKind::name) refuse("expected a name");
  return next().text;
}

void ExpressionParser::refuse(const std::string& what) const { fail(text::concat("line ", peek().line, ": ", what)); }

Expression ExpressionParser::tuple() {
  auto first = expression();
  if (!is_op(",")) return first;
  std::vector<Expression> parts = {std::move(first)};
  while (take_op(",") && !is_at_end()) parts.push_back(expression());
  return tuple_of(std::move(parts));
}

Expression ExpressionParser::expression() {
  const Level level(*this);
  auto value = or_expression();
  while (take_name("if")) {
    link();
    auto condition = or_expression();
    auto other = take_name("else") ? expression() : constant(Value());
    value = [=](Rendering& rendering) { return is_true(condition(rendering)) ? value(rendering) : other(rendering); };
  }
  return value;
}

Expression ExpressionParser::or_expression() {
  auto left = and_expression();
  while (take_name("or")) {
    link();
    left = [left, right = and_expression()](Rendering& rendering) {
      auto value = left(rendering);
      return is_true(value) ? value : right(rendering);
    };
  }
  return left;
}

Expression ExpressionParser::and_expression() {
  auto left = not_expression();
  while (take_name("and")) {
    link();
    left = [left, right = not_expression()](Rendering& rendering) {
      auto value = left(rendering);
      return is_true(value) ? right(rendering) : value;
    };
  }
  return left;
}

Expression ExpressionParser::not_expression() {
  const Level level(*this);
  if (!take_name("not")) return comparison();
  return [value = not_expression()](Rendering& rendering) { return Value(Json(!is_true(value(rendering)))); };
}

/// a < b < c compares both pairs.
Expression ExpressionParser::comparison() {
  auto first = sum();
  std::vector<std::pair<std::string, Expression>> rest;
  while (true) {
    std::string op;
    for (const auto* one : {"==", "!=", "<=", ">=", "<", ">"})
      if (op.empty() && take_op(one)) op = one;
    if (op.empty() && take_name("in")) op = "in";
    if (op.empty() && is_name("not")) {
      next();
      require_name("in");
      op = "not in";
    }
    if (op.empty()) break;
    rest.emplace_back(op, sum());
  }
  if (rest.empty()) return first;
  return [=](Rendering& rendering) {
    auto left = first(rendering);
    for (const auto& [op, operand] : rest) {
      auto right = operand(rendering);
      const bool holds = op == "in"       ? contains(right, left)
                         : op == "not in" ? !contains(right, left)
                                          : compared(op, left, right);
      if (!holds) return Value(Json(false));
      left = std::move(right);
    }
    return Value(Json(true));
  };
}

Expression ExpressionParser::chain(const std::vector<std::string>& ops, Expression (ExpressionParser::*operand)()) {
  auto left = (this->*operand)();
  while (true) {
    const auto op = std::ranges::find_if(ops, [&](const auto& one) { return is_op(one); });
    if (op == ops.end()) return left;
    next();
    link();
    left = [op = *op, left, right = (this->*operand)()](Rendering& rendering) {
      const auto first = left(rendering);
      return arithmetic(op, first, right(rendering));
    };
  }
}

Expression ExpressionParser::sum() { return chain({"+", "-"}, &ExpressionParser::joined); }
Expression ExpressionParser::joined() { return chain({"~"}, &ExpressionParser::product); }
Expression ExpressionParser::product() { return chain({"*", "//", "/", "%"}, &ExpressionParser::unary); }

/// Filters and tests take the number with its sign.
Expression ExpressionParser::unary() { return with_filters(signed_value()); }

Expression ExpressionParser::signed_value() {
  const Level level(*this);
  if (take_op("-"))
    return [value = signed_value()](Rendering& rendering) { return arithmetic("-", Json(0), value(rendering)); };
  if (take_op("+")) return signed_value();
  return postfix();
}

Expression ExpressionParser::with_filters(Expression value) {
  while (true) {
    if (take_op("|")) {
      link();
      value = filter(value);
    } else if (take_name("is")) {
      link();
      value = test(value);
    } else {
      return value;
    }
  }
}

Expression ExpressionParser::filter(const Expression& value) {
  const auto called = name();
  const auto arguments = is_op("(") ? call() : CallExpressions{};
  return [=](Rendering& rendering) { return filtered(called, value(rendering), arguments.values(rendering)); };
}

Expression ExpressionParser::test(const Expression& value) {
  const bool is_negated = take_name("not");
  const auto called = peek().kind == TokenKind::op ? next().text : name();
  CallExpressions arguments;
  const auto& after = peek();
  const bool ends =
      after.kind == TokenKind::end || after.kind == TokenKind::op ||
      (after.kind == TokenKind::name &&
       std::ranges::count(std::vector<std::string>{"and", "or", "else", "if", "is", "in", "not"}, after.text));
  if (is_op("(")) {
    arguments = call();
  } else if (!ends || is_op("[") || is_op("{")) {
    arguments.positional.push_back(postfix());
  }
  return [=](Rendering& rendering) {
    return Value(Json(tested(called, value(rendering), arguments.values(rendering)) != is_negated));
  };
}

// Operands: names, numbers, lists, objects, calls and subscripts.

Expression constant(Value value) {
  return [value = std::move(value)](Rendering&) { return value; };
}

Expression list_of(std::vector<Expression> parts) {
  return [parts = std::move(parts)](Rendering& rendering) {
    auto all = Json::array();
    for (const auto& part : parts) all.push_back(part(rendering).json);
    return Value(all);
  };
}

Expression tuple_of(std::vector<Expression> parts) {
  return [list = list_of(std::move(parts))](Rendering& rendering) {
    auto value = list(rendering);
    value.is_tuple = true;
    return value;
  };
}

Expression ExpressionParser::postfix() {
  auto value = primary();
  while (true) {
    if (is_op(".") || is_op("[") || is_op("(")) link();
    if (take_op(".")) {
      const auto key = peek().kind == TokenKind::number ? next().text : name();
      value = [value, key](Rendering& rendering) {
        const auto owner = value(rendering);
        auto method = method_of(owner, key);
        return method.is_defined ? method : item_of(owner, Json(key));
      };
    } else if (take_op("[")) {
      value = subscript(value);
    } else if (is_op("(")) {
      value = [value, arguments = call(), line = peek().line](Rendering& rendering) {
        const auto called = value(rendering);
        if (!called.function) fail(text::concat("line ", line, ": what is called is not a function that is supported"));
        return called.function(arguments.values(rendering));
      };
    } else {
      return value;
    }
  }
}

/// value[key], or value[begin:end:step]
Expression ExpressionParser::subscript(const Expression& value) {
  std::vector<Expression> bounds = {constant(Value())};
  bool is_slice = false;
  while (!is_op("]")) {
    if (take_op(":")) {
      is_slice = true;
      bounds.push_back(constant(Value()));
    } else {
      bounds.back() = expression();
    }
  }
  require_op("]");
  if (bounds.size() > 3) refuse("a slice has too many bounds");
  if (!is_slice) {
    return [value, key = bounds.front()](Rendering& rendering) {
      const auto owner = value(rendering);
      return item_of(owner, key(rendering));
    };
  }
  bounds.resize(3, constant(Value()));
  return [value, bounds](Rendering& rendering) {
    return slice_of(value(rendering), bounds[0](rendering), bounds[1](rendering), bounds[2](rendering));
  };
}

Expression ExpressionParser::primary() {
  const Level level(*this);
  if (take_op("(")) {
    if (take_op(")")) return constant(Json::array());
    auto value = expression();
    if (is_op(",")) {
      std::vector<Expression> parts = {std::move(value)};
      while (take_op(",") && !is_op(")")) parts.push_back(expression());
      value = tuple_of(std::move(parts));
    }
    require_op(")");
    return value;
  }
  if (take_op("[")) return list("]");
  if (take_op("{")) return object();
  const auto token = next();
  if (token.kind == TokenKind::number) return constant(number_of(token.text));
  if (token.kind == TokenKind::name) return literal_name(token);
  if (token.kind != TokenKind::string) refuse(text::concat("expected a value, got ", text::quote(token.text)));
  auto text = token.text;
  while (peek().kind == TokenKind::string) text += next().text;
  return constant(Json(text));
}

Expression ExpressionParser::literal_name(const TemplateToken& token) {
  const auto& name = token.text;
  if (name == "true" || name == "True") return constant(Json(true));
  if (name == "false" || name == "False") return constant(Json(false));
  if (name == "none" || name == "None") return constant(Json());
  return [name](Rendering& rendering) { return rendering.scope->find(name); };
}

Expression ExpressionParser::list(std::string_view close) {
  std::vector<Expression> parts;
  while (!take_op(close)) {
    parts.push_back(expression());
    if (!is_op(close)) require_op(",");
  }
  return list_of(std::move(parts));
}

Expression ExpressionParser::object() {
  std::vector<std::pair<Expression, Expression>> parts;
  while (!take_op("}")) {
    auto key = expression();
    require_op(":");
    parts.emplace_back(std::move(key), expression());
    if (!is_op("}")) require_op(",");
  }
  return [parts](Rendering& rendering) {
    auto all = Json::object();
    for (const auto& [key, value] : parts) {
      const auto name = text_of(key(rendering));
      all[name] = value(rendering).json;
    }
    return Value(all);
  };
}

ExpressionParser::CallExpressions ExpressionParser::call() {
  CallExpressions arguments;
  require_op("(");
  while (!take_op(")")) {
    const bool is_named = peek().kind == TokenKind::name && at_ + 1 < tokens_.size() &&
                          tokens_[at_ + 1].kind == TokenKind::op && tokens_[at_ + 1].text == "=";
    if (is_named) {
      const auto key = name();
      require_op("=");
      arguments.named.emplace_back(key, expression());
    } else {
      arguments.positional.push_back(expression());
    }
    if (!is_op(")")) require_op(",");
  }
  return arguments;
}

}  // namespace hortator::models::chat
