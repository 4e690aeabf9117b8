#include "parallel/tensor/plan.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using parallel::Division;
using parallel::divisions_by_plan;
using parallel::matches;
using parallel::PlannedParameter;

namespace {

const PlannedParameter up{.name = "model.layers.0.mlp.up.weight", .sizes = {8, 4}, .identity = "up"};
const PlannedParameter up_bias{.name = "model.layers.0.mlp.up.bias", .sizes = {8}, .identity = "up bias"};
const PlannedParameter down{.name = "model.layers.0.mlp.down.weight", .sizes = {4, 8}, .identity = "down"};
const PlannedParameter down_bias{.name = "model.layers.0.mlp.down.bias", .sizes = {4}, .identity = "down bias"};

TensorRule columns(std::string pattern) { return {.pattern = std::move(pattern), .division = TensorDivision::columns}; }
TensorRule rows(std::string pattern) { return {.pattern = std::move(pattern), .division = TensorDivision::rows}; }

}  // namespace

TEST_CASE("a pattern fits whole names, and their ends from a dot on", "[serial]") {
  CHECK(matches("layers.*.mlp.up", "model.layers.12.mlp.up"));
  CHECK(matches("mlp.up", "model.layers.12.mlp.up"));
  CHECK(matches("q_*", "attention.q_proj"));
  CHECK(matches("*", "lm_head"));
  CHECK_FALSE(matches("up", "model.mlp.wake_up"));
  CHECK_FALSE(matches("layers.*.up", "layers.0.mlp.up"));
  CHECK_FALSE(matches("mlp", "mlp.up"));
  CHECK_FALSE(matches("", "mlp"));
}

TEST_CASE("columns divide outputs and biases, rows divide inputs", "[serial]") {
  const auto found = divisions_by_plan({columns("mlp.up"), rows("mlp.down")}, {up, up_bias, down, down_bias}, 2);
  CHECK(found[0] == Division{.dim = 0});
  CHECK(found[1] == Division{.dim = 0});
  CHECK(found[2] == Division{.dim = 1});
  CHECK_FALSE(found[3]);
}

TEST_CASE("transposed weights are divided along the other dimension, fused ones by blocks", "[serial]") {
  const TensorPlan plan = {{.pattern = "mlp.up", .division = TensorDivision::columns, .blocks = 2, .transposed = true}};
  const auto found = divisions_by_plan(plan, {up, up_bias}, 2);
  CHECK(found[0] == Division{.dim = 1, .blocks = 2});
  CHECK(found[1] == Division{.dim = 0, .blocks = 2});
}

TEST_CASE("factors of adapters are divided where their layer is, never transposed", "[serial]") {
  const auto factor = [](const char* layer, const char* rest, parallel::Sizes sizes) {
    const auto name = std::string("layers.0.mlp.") + layer + "." + rest;
    return PlannedParameter{.name = name, .sizes = std::move(sizes), .identity = rest};
  };
  const auto a = factor("up", "lora_A.default.weight", {2, 4}), b = factor("up", "lora_B.default.weight", {8, 2}),
             bias = factor("up", "lora_B.default.bias", {8});
  auto transposed = columns("mlp.up");
  transposed.transposed = true;
  transposed.blocks = 2;
  for (const auto& rule : {columns("mlp.up"), transposed}) {
    const auto found = divisions_by_plan({rule}, {a, b, bias}, 2);
    CHECK_FALSE(found[0]);
    CHECK(found[1] == Division{.dim = 0, .blocks = rule.blocks});
    CHECK(found[2] == Division{.dim = 0, .blocks = rule.blocks});
  }
  const auto by_rows =
      divisions_by_plan({rows("mlp.down")},
                        {factor("down", "lora_A.default.weight", {2, 8}),
                         factor("down", "lora_B.default.weight", {4, 2}), factor("down", "lora_B.default.bias", {4})},
                        2);
  CHECK(by_rows[0] == Division{.dim = 1});
  CHECK_FALSE(by_rows[1]);
  CHECK_FALSE(by_rows[2]);
  const TensorPlan vocabulary = {{.pattern = "up", .division = TensorDivision::vocabulary}};
  for (const auto& division : divisions_by_plan(vocabulary, {a, b}, 2)) CHECK_FALSE(division);
}

TEST_CASE("the first rule that fits counts", "[serial]") {
  const auto found = divisions_by_plan({{.pattern = "up.bias"}, columns("mlp.up")}, {up, up_bias}, 2);
  CHECK(found[0] == Division{.dim = 0});
  CHECK_FALSE(found[1]);
}

TEST_CASE("heads stay together, and what cannot be divided is replicated where the rule allows it", "[serial]") {
  auto heads = columns("mlp.up");
  heads.unit = 4;
  CHECK(divisions_by_plan({heads}, {up}, 2)[0] == Division{.dim = 0});
  CHECK_THROWS_WITH(divisions_by_plan({heads}, {up}, 4), ContainsSubstring("in heads of 4"));
  heads.or_replicate = true;
  CHECK_FALSE(divisions_by_plan({heads}, {up}, 4)[0]);
}

TEST_CASE("a vocabulary is padded, unless a rank would have padding only", "[serial]") {
  const PlannedParameter tokens{.name = "tokens.weight", .sizes = {13, 4}, .identity = "tokens"};
  const PlannedParameter bias{.name = "tokens.bias", .sizes = {13}, .identity = "bias"};
  TensorRule rule{.pattern = "tokens", .division = TensorDivision::vocabulary};
  const auto found = divisions_by_plan({rule}, {tokens, bias}, 4);
  CHECK(found[0] == Division{.dim = 0, .padding = 3});
  CHECK(found[1] == found[0]);
  CHECK(divisions_by_plan({rule}, {tokens}, 13)[0] == Division{.dim = 0});
  CHECK_THROWS_WITH(divisions_by_plan({rule}, {tokens}, 8), ContainsSubstring("cannot be divided"));
  rule.or_replicate = true;
  CHECK_FALSE(divisions_by_plan({rule}, {tokens}, 8)[0]);
}

TEST_CASE("a rule for the sequence divides the sums of all other layers of the plan", "[serial]") {
  const PlannedParameter norm{.name = "model.layers.0.norm.weight", .sizes = {4}, .identity = "norm"};
  const auto found =
      divisions_by_plan({columns("mlp.up"), rows("mlp.down"), {.pattern = "*", .division = TensorDivision::sequence}},
                        {up, down, norm}, 2);
  CHECK(found[0] == Division{.dim = 0});
  CHECK(found[1] == Division{.dim = 1, .to_sequence = true});
  CHECK_FALSE(found[2]);
  CHECK(TensorRule::from_hugging_face("norm", "sequence_parallel").division == TensorDivision::sequence);
}

TEST_CASE("mistakes in a plan are errors", "[serial]") {
  CHECK_THROWS_WITH(divisions_by_plan({columns("mlp.upp")}, {up}, 2),
                    ContainsSubstring("The pattern 'mlp.upp' of the tensor-parallel plan fits no parameter") &&
                        ContainsSubstring("the model has the layers"));
  CHECK_THROWS_WITH(divisions_by_plan({columns("a"), columns("up"), columns("b")}, {up}, 2),
                    ContainsSubstring("The patterns 'a', 'b' of the tensor-parallel plan fit no parameter"));
  CHECK_THROWS_WITH(divisions_by_plan({columns("mlp.up")}, {up}, 3), ContainsSubstring("cannot be divided"));
  const PlannedParameter kernel{.name = "conv.weight", .sizes = {4, 4, 3, 3}, .identity = "conv"};
  CHECK_THROWS_WITH(divisions_by_plan({columns("conv")}, {kernel}, 2), ContainsSubstring("4 dimensions"));
  auto tied = up;
  tied.name = "lm_head.weight";
  CHECK_THROWS_WITH(divisions_by_plan({columns("mlp.up")}, {up, tied}, 2), ContainsSubstring("differently"));
}

TEST_CASE("plans of Hugging Face are understood", "[serial]") {
  CHECK(TensorRule::from_hugging_face("q_proj", "colwise").division == TensorDivision::columns);
  CHECK(TensorRule::from_hugging_face("o_proj", "rowwise").division == TensorDivision::rows);
  CHECK(TensorRule::from_hugging_face("lm_head", "colwise_rep").division == TensorDivision::columns);
  CHECK_THROWS_WITH(TensorRule::from_hugging_face("experts", "ep_router"), ContainsSubstring("not supported"));
}
