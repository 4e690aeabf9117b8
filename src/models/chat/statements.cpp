// Statements of chat templates: for, if, set, macro and what belongs to them.
#include <algorithm>
#include <utility>

#include "core/text/text.hpp"
#include "models/chat/expressions.hpp"

namespace hortator::models::chat {
namespace {

/// Binds a loop's or a set's names. Several names take the elements of a list.
void assign(Scope& scope, const std::vector<std::string>& names, const Value& value) {
  require_bounded(value);
  if (names.size() == 1) {
    scope.names[names.front()] = value;
    return;
  }
  const auto parts = elements(value);
  if (parts.size() != names.size()) fail(text::concat("expected ", names.size(), " values, got ", parts.size()));
  for (std::size_t i = 0; i < names.size(); ++i) scope.names[names[i]] = parts[i];
}

/// What a loop is over, its names, and what it does.
struct Loop {
  std::vector<std::string> names;
  Expression over, condition;
  Block body, otherwise;
};

Value loop_facts(const std::vector<Value>& items, std::size_t i) {
  const auto count = items.size();
  Json facts = {{"index", i + 1},        {"index0", i},
                {"revindex", count - i}, {"revindex0", count - i - 1},
                {"first", i == 0},       {"last", i + 1 == count},
                {"length", count}};
  if (i > 0) facts["previtem"] = items[i - 1].json;
  if (i + 1 < count) facts["nextitem"] = items[i + 1].json;
  return facts;
}

Flow run_loop(const Loop& loop, Rendering& rendering) {
  auto* outer = rendering.scope;
  std::vector<Value> items;
  for (auto& item : elements(loop.over(rendering))) {
    Scope scope{.parent = outer};
    assign(scope, loop.names, item);
    rendering.scope = &scope;
    if (!loop.condition || is_true(loop.condition(rendering))) items.push_back(std::move(item));
    rendering.scope = outer;
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    rendering.step();
    Scope scope{.parent = outer};
    assign(scope, loop.names, items[i]);
    scope.names["loop"] = loop_facts(items, i);
    rendering.scope = &scope;
    const auto flow = run(loop.body, rendering);
    rendering.scope = outer;
    if (flow == Flow::leave_loop) break;
  }
  return items.empty() ? run(loop.otherwise, rendering) : Flow::on;
}

/// A macro's parameters, some with defaults, and its text.
struct Macro {
  std::vector<std::pair<std::string, Expression>> parameters;
  Block body;
};

Value call_macro(const Macro& macro, const CallArguments& arguments, Rendering& rendering) {
  auto* caller = rendering.scope;
  const auto* top = static_cast<const Scope*>(caller);
  while (top->parent != nullptr) top = top->parent;
  Scope scope{.parent = top};
  for (const auto& one : arguments.positional) require_bounded(one);
  for (const auto& [name, one] : arguments.named) require_bounded(one);
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [name, absent] = macro.parameters[i];
    const auto named = arguments.named.find(name);
    if (i < arguments.positional.size()) {
      scope.names[name] = arguments.positional[i];
    } else if (named != arguments.named.end()) {
      scope.names[name] = named->second;
    } else {
      scope.names[name] = absent ? absent(rendering) : Value();
    }
  }
  rendering.step();
  rendering.enter();
  rendering.scope = &scope;
  auto text = text_of(macro.body, rendering);
  rendering.scope = caller;
  rendering.leave();
  return Json(std::move(text));
}

class TemplateParser {
 public:
  explicit TemplateParser(std::string_view source) : segments_(segments_of(source)) {}

  Block run() {
    auto block = block_until({});
    return block;
  }

 private:
  using Names = std::vector<std::string>;

  /// The statements up to one of these; that one is left.
  Block block_until(const Names& ends) {
    if (++depth_ > deepest) fail("statements are nested too deeply");
    Block block;
    for (; at_ < segments_.size(); ++at_) {
      const auto& segment = segments_[at_];
      if (segment.kind == SegmentKind::statement && std::ranges::count(ends, keyword())) break;
      if (auto statement = statement_of(segment)) block.push_back(std::move(statement));
    }
    if (at_ >= segments_.size() && !ends.empty()) fail(text::concat("'", ends.front(), "' is missing"));
    --depth_;
    return block;
  }

  const std::string& keyword() const { return segments_[at_].tokens.front().text; }

  Statement statement_of(const Segment& segment) {
    if (segment.kind == SegmentKind::text) {
      return [text = segment.text](Rendering& rendering) {
        rendering.out += text;
        return Flow::on;
      };
    }
    ExpressionParser tokens(segment.tokens);
    if (segment.kind == SegmentKind::output) {
      auto value = tokens.tuple();
      tokens.require_end();
      return [value](Rendering& rendering) {
        rendering.out += text_of(value(rendering));
        return Flow::on;
      };
    }
    return statement_of(tokens.name(), tokens);
  }

  Statement statement_of(const std::string& name, ExpressionParser& tokens) {
    if (name == "for") return for_loop(tokens);
    if (name == "if") return condition(tokens);
    if (name == "set") return assignment(tokens);
    if (name == "macro") return macro(tokens);
    if (name == "break") return [](Rendering&) { return Flow::leave_loop; };
    if (name == "continue") return [](Rendering&) { return Flow::next_pass; };
    if (name == "generation") {  // marks what the model writes
      auto body = body_until({"endgeneration"});
      return [body](Rendering& rendering) { return chat::run(body, rendering); };
    }
    tokens.refuse(
        text::concat("the statement ", text::quote(name),
                     " is not supported; there are for, if, set, macro, break, continue, generation and raw"));
  }

  /// The block after this statement.
  Block body_until(const Names& ends) {
    ++at_;
    return block_until(ends);
  }

  Statement for_loop(ExpressionParser& tokens) {
    Loop loop;
    do loop.names.push_back(tokens.name());
    while (tokens.take_op(","));
    tokens.require_name("in");
    loop.over = tokens.or_expression();
    if (tokens.take_name("if")) loop.condition = tokens.expression();
    tokens.require_end();
    loop.body = body_until({"endfor", "else"});
    if (keyword() == "else") loop.otherwise = body_until({"endfor"});
    return [loop](Rendering& rendering) { return run_loop(loop, rendering); };
  }

  Statement condition(ExpressionParser& first) {
    struct Branch {
      Expression condition;
      Block body;
    };
    const Names ends = {"endif", "else", "elif"};
    std::vector<Branch> branches;
    auto holds = first.expression();
    first.require_end();
    branches.push_back({std::move(holds), body_until(ends)});
    while (keyword() == "elif") {
      ExpressionParser tokens(segments_[at_].tokens);
      tokens.require_name("elif");
      auto next = tokens.expression();
      tokens.require_end();
      branches.push_back({std::move(next), body_until(ends)});
    }
    Block otherwise;
    if (keyword() == "else") otherwise = body_until({"endif"});
    return [branches, otherwise](Rendering& rendering) {
      for (const auto& [condition, body] : branches)
        if (is_true(condition(rendering))) return chat::run(body, rendering);
      return chat::run(otherwise, rendering);
    };
  }

  Statement assignment(ExpressionParser& tokens) {
    Names names = {tokens.name()};
    if (tokens.take_op(".")) return member_assignment(names.front(), tokens);
    while (tokens.take_op(",")) names.push_back(tokens.name());
    if (tokens.is_at_end()) {
      auto body = body_until({"endset"});
      return [names, body](Rendering& rendering) {
        rendering.scope->names[names.front()] = Json(text_of(body, rendering));
        return Flow::on;
      };
    }
    tokens.require_op("=");
    auto value = tokens.tuple();
    tokens.require_end();
    return [names, value](Rendering& rendering) {
      assign(*rendering.scope, names, value(rendering));
      return Flow::on;
    };
  }

  static Statement member_assignment(const std::string& owner, ExpressionParser& tokens) {
    const auto member = tokens.name();
    tokens.require_op("=");
    auto value = tokens.tuple();
    tokens.require_end();
    return [=](Rendering& rendering) {
      const auto names = rendering.scope->find(owner).names;
      if (!names) fail(text::concat("'", owner, ".", member, "' can be set only if ", owner, " is a namespace"));
      const auto assigned = value(rendering);
      require_bounded(assigned);
      (*names)[member] = assigned;
      return Flow::on;
    };
  }

  Statement macro(ExpressionParser& tokens) {
    const auto name = tokens.name();
    Macro macro;
    tokens.require_op("(");
    while (!tokens.take_op(")")) {
      auto parameter = tokens.name();
      macro.parameters.emplace_back(std::move(parameter), tokens.take_op("=") ? tokens.expression() : Expression());
      if (!tokens.is_op(")")) tokens.require_op(",");
    }
    tokens.require_end();
    macro.body = body_until({"endmacro"});
    return [name, macro](Rendering& rendering) {
      rendering.scope->names[name] = Value::of_function(
          [macro, &rendering](const CallArguments& arguments) { return call_macro(macro, arguments, rendering); });
      return Flow::on;
    };
  }

  static constexpr std::size_t deepest = 50;
  std::vector<Segment> segments_;
  std::size_t at_ = 0, depth_ = 0;
};

}  // namespace

Block parse(std::string_view source) { return TemplateParser(source).run(); }

}  // namespace hortator::models::chat
