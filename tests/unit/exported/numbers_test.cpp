#include "exported/file/fault.hpp"
#include "exported/run/runner.hpp"
#include "support/catch.hpp"

using namespace hortator::exported;
using Number = std::variant<bool, std::int64_t, double>;

namespace {

/// A graph of one node, whose operands are numbers.
c10::IValue result_of(const std::string& function, const std::vector<Number>& operands) {
  Graph graph;
  Node node{.name = "node", .target = function, .outputs = {{.content = Reference{"result"}}}};
  for (const auto& operand : operands) {
    Argument argument;
    std::visit([&](auto number) { argument.content = number; }, operand);
    node.inputs.push_back({.name = "", .value = argument});
  }
  graph.nodes.push_back(node);
  graph.outputs.push_back({.content = Reference{"result"}});
  return GraphRunner(graph).run({}, c10::kCPU).front();
}

std::int64_t whole(const std::string& function, const std::vector<Number>& operands) {
  return result_of(function, operands).toInt();
}
double real(const std::string& function, const std::vector<Number>& operands) {
  return result_of(function, operands).toDouble();
}
bool truth(const std::string& function, const std::vector<Number>& operands) {
  return result_of(function, operands).toBool();
}

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("functions of sizes have Python's results") {
  CHECK(whole("_operator.add", {2L, 3L}) == 5);
  CHECK(real("_operator.add", {2L, 0.5}) == 2.5);
  CHECK(whole("_operator.floordiv", {-7L, 2L}) == -4);
  CHECK(whole("_operator.floordiv", {7L, -2L}) == -4);
  CHECK(real("_operator.floordiv", {7.5, 2L}) == 3.0);
  CHECK(whole("_operator.mod", {-7L, 3L}) == 2);
  CHECK(whole("_operator.mod", {7L, -3L}) == -2);
  CHECK(whole("_operator.pow", {3L, 4L}) == 81);
  CHECK(whole("_operator.pow", {-1L, largest}) == -1);
  CHECK(real("_operator.pow", {4L, 0.5}) == 2.0);
  CHECK(real("_operator.pow", {2L, -1L}) == 0.5);
  CHECK(real("_operator.truediv", {7L, 2L}) == 3.5);
  CHECK(whole("_operator.neg", {7L}) == -7);
  CHECK(whole("_operator.lshift", {3L, 2L}) == 12);
  CHECK(whole("_operator.rshift", {-5L, 1L}) == -3);
  CHECK(truth("_operator.lt", {2L, 2.5}));
  CHECK(truth("_operator.ne", {2L, 3L}));
  CHECK(truth("_operator.and_", {true, true}));
  CHECK(whole("_operator.or_", {5L, 2L}) == 7);
  CHECK(whole("torch.sym_max", {2L, 3L}) == 3);
  CHECK(real("torch.sym_min", {2.5, 3L}) == 2.5);
  CHECK(whole("torch.sym_int", {-2.7}) == -2);
  CHECK(whole("math.ceil", {2.1}) == 3);
  CHECK(whole("torch.sym_ite", {false, 1L, 2L}) == 2);
  CHECK(truth("torch.sym_not", {false}));
  CHECK(real("torch.sym_float", {3L}) == 3.0);
}

TEST_CASE("sizes that a number cannot hold are errors, with the node") {
  CHECK_THROWS_WITH(whole("_operator.mul", {largest, 2L}),
                    ContainsSubstring("node 'node'") && ContainsSubstring("does not fit into 64 bits"));
  CHECK_THROWS_WITH(whole("_operator.floordiv", {1L, 0L}), ContainsSubstring("divided by 0"));
  CHECK_THROWS_WITH(whole("torch.sym_int", {std::numeric_limits<double>::quiet_NaN()}), ContainsSubstring("64 bits"));
  CHECK_THROWS_WITH(whole("_operator.lshift", {1L, 64L}), ContainsSubstring("number of bits"));
  CHECK_THROWS_WITH(whole("_operator.add", {1L}), ContainsSubstring("expected 2 operands, got 1"));
}
