#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/chat/lexer.hpp"
#include "models/chat/program.hpp"

namespace hortator::models::chat {

Expression constant(Value value);
Expression list_of(std::vector<Expression> parts);
Expression tuple_of(std::vector<Expression> parts);

/// Reads the tokens of one tag.
class ExpressionParser {
 public:
  explicit ExpressionParser(const std::vector<TemplateToken>& tokens) : tokens_(tokens) {}

  Expression expression();  ///< with `a if b else c`
  Expression or_expression();
  Expression tuple();  ///< one expression, or several with commas

  bool is_at_end() const { return peek().kind == TokenKind::end; }
  bool is_name(std::string_view text) const { return peek().kind == TokenKind::name && peek().text == text; }
  bool is_op(std::string_view text) const { return peek().kind == TokenKind::op && peek().text == text; }
  bool take_name(std::string_view text);
  bool take_op(std::string_view text);
  void require_op(std::string_view text);
  void require_name(std::string_view text);
  void require_end();
  std::string name();  ///< any
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  struct CallExpressions {
    std::vector<Expression> positional;
    std::vector<std::pair<std::string, Expression>> named;  ///< in the order of the call

    CallArguments values(Rendering& rendering) const;
  };

  const TemplateToken& peek() const { return tokens_[at_]; }
  TemplateToken next();
  Expression and_expression();
  Expression not_expression();
  Expression comparison();
  Expression chain(const std::vector<std::string>& ops, Expression (ExpressionParser::*operand)());
  Expression sum();
  Expression joined();
  Expression product();
  Expression unary();
  Expression signed_value();
  Expression with_filters(Expression value);
  Expression test(const Expression& value);
  Expression filter(const Expression& value);
  Expression postfix();
  Expression subscript(const Expression& value);
  Expression primary();
  Expression literal_name(const TemplateToken& token);
  Expression list(std::string_view close);
  Expression object();
  CallExpressions call();

  /// Counts operators, filters and members: each is a level of recursion when the expression is evaluated.
  void link();
  /// Counts how deep expressions are nested: hostile ones would exhaust the stack.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

  const std::vector<TemplateToken>& tokens_;
  std::size_t at_ = 0, depth_ = 0, links_ = 0;
};

}  // namespace hortator::models::chat
