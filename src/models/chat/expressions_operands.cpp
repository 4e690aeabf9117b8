// What operators and filters of chat templates are applied to: names, numbers, lists, objects, calls and subscripts.
#include <charconv>
#include <utility>

#include "core/text/text.hpp"
#include "models/chat/expressions.hpp"

namespace hortator::models::chat {
namespace {

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
