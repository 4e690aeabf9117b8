#include "exported/file/fault.hpp"
#include "exported/graph/expression.hpp"
#include "exported/graph/guard.hpp"
#include "exported/graph/structure.hpp"
#include "support/catch.hpp"

using namespace hortator::exported;
using Names = std::vector<std::string>;

namespace {

const std::string s0 = "Symbol('s0', positive=True, integer=True)", s1 = "Symbol('s1', integer=True)";

std::optional<std::int64_t> value_of(const std::string& text, const Symbols& symbols = {}) {
  return Expression::parse(text).evaluate(symbols);
}

const std::string value = R"({"type": null, "context": null, "children_spec": []})";

}  // namespace

TEST_CASE("sizes are computed as SymPy and PyTorch define them") {
  CHECK(value_of("Integer(-7)") == -7);
  CHECK(value_of("Add(Mul(Integer(2), " + s0 + "), Integer(1))", {{"s0", 5}}) == 11);
  CHECK(value_of("FloorDiv(Integer(-7), Integer(2))") == -4);
  CHECK(value_of("Mod(Integer(-7), Integer(3))") == 2);
  CHECK(value_of("Max(Integer(1), " + s0 + ", Integer(4))", {{"s0", 3}}) == 4);
  CHECK(value_of("Min(Integer(1), Integer(4))") == 1);
  CHECK(value_of("Pow(Integer(3), Integer(4))") == 81);
  CHECK_FALSE(value_of(s0));
  CHECK_FALSE(value_of("FloorDiv(Integer(1), Integer(0))"));
  CHECK_FALSE(value_of("Mul(Integer(9223372036854775807), Integer(2))"));
  CHECK_FALSE(value_of("Unknown(Integer(1), Integer(2))"));
  CHECK(Expression::parse("Mul(Integer(2), Add(" + s0 + ", Integer(1)))").to_string() == "2*(s0 + 1)");
}

TEST_CASE("a size gives a value to the symbol that it determines") {
  Symbols symbols;
  CHECK(Expression::parse("Add(Mul(Integer(2), " + s0 + "), Integer(1))").unify(11, symbols));
  CHECK(symbols.at("s0") == 5);
  CHECK_FALSE(Expression::parse(s0).unify(6, symbols));
  CHECK_FALSE(Expression::parse("Mul(Integer(2), " + s1 + ")").unify(7, symbols));
  CHECK(Expression::parse("FloorDiv(" + s1 + ", Integer(2))").unify(7, symbols));
  CHECK_FALSE(symbols.contains("s1"));
}

TEST_CASE("texts that are not expressions are refused") {
  for (const auto* text : {"", "Add", "Add(", "Symbol('s0", "Symbol(s0)", "Integer(x)", "Integer(1))", "(1)"})
    CHECK_THROWS_AS(Expression::parse(text), ExportFault);
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "Add(";
  CHECK_THROWS_WITH(Expression::parse(deep), ContainsSubstring("nested too deeply"));
}

TEST_CASE("values of nested results are named by keys, fields and positions") {
  const auto names = [](const std::string& spec, const NamedTuples& named_tuples = {}) {
    return Structure::parse("[1, " + spec + "]", named_tuples).names();
  };
  const auto node = [](const std::string& type, const std::string& context, const std::string& children) {
    return R"({"type": ")" + type + R"(", "context": )" + context + R"(, "children_spec": [)" + children + "]}";
  };
  CHECK(names(value) == Names{""});
  CHECK(names(node("builtins.tuple", R"("null")", value + "," + node("builtins.list", R"("null")", value))) ==
        Names{"0", "1.0"});
  CHECK(names(node("builtins.dict", R"("[\"logits\", 3]")", value + "," + value)) == Names{"logits", "3"});
  CHECK(names(node("Pair", R"("\"Pair\"")", value + "," + value), {{"Pair", {"first", "second"}}}) ==
        Names{"first", "second"});
  CHECK(names(node("Output", R"("[[\"a\"], [\"b\"]]")", value)) == Names{"a"});
  CHECK_THROWS_AS(Structure::parse("[2, " + value + "]", {}), ExportFault);
  CHECK_THROWS_AS(Structure::parse("{}", {}), ExportFault);
}

TEST_CASE("conditions of the exporter on sizes and numbers hold as in Python, and those of other things may") {
  const GuardedValue given = [](const std::string& path, std::optional<std::int64_t> dimension) {
    if (path == "x" && dimension == 0) return std::optional<std::int64_t>(9);
    if (path == "batch.ids" && dimension == 1) return std::optional<std::int64_t>(4);
    return path == "n" && !dimension ? std::optional<std::int64_t>(-7) : std::nullopt;
  };
  for (const auto* guard :
       {"1 + (L['x'].size()[0] // 2) <= L['x'].size()[0]", "1 + (L['x'].size()[0] % 3) != 2", "L['n'] // 2 == -4",
        "L['n'] % 3 == 2", "max(L['x'].size()[0], 12) == 12 and not L['n'] > 0", "-L['n'] ** 2 == -49",
        "L['batch']['ids'].size()[1] == 4 or 1 == 2", "(2 * L['x'].size()[0] - 3) * 2 == 30"}) {
    INFO(guard);
    CHECK(may_hold(guard, given));
  }
  for (const auto* guard :
       {"1 + (L['x'].size()[0] % 3) >= 2", "L['x'].size()[0] % 2 == 0", "L['batch'].ids.size()[1] > 4",
        "not L['x'].size()[0] == 9", "min(L['x'].size()[0], 3) > 3", "1 == 2 or 2 == 3"}) {
    INFO(guard);
    CHECK_FALSE(may_hold(guard, given));
  }
  for (const auto* guard : {"L['y'].size()[0] == 1", "L['x'].size()[1] == 1", "L['x'].stride()[0] == 1", "1 == 1.5",
                            "L['x'].size()[0] / 2 == 1", "2 ** 70 == 1", "", "((", "L['x'", "1 // 0 == 1"}) {
    INFO(guard);
    CHECK(may_hold(guard, given));
  }
}
