#include "bigmodel/estimate.hpp"

#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::bigmodel;

namespace {

formats::TensorSpec spec(std::vector<std::int64_t> shape, at::ScalarType type = at::kFloat) {
  return {.type = type, .shape = std::move(shape)};
}

ModuleTree model(at::ScalarType type = at::kFloat) {
  return tree_of_names({{"embed.weight", spec({100, 8}, type)},
                        {"layers.0.up.weight", spec({16, 8}, type)},
                        {"layers.0.up.bias", spec({16}, type)},
                        {"layers.0.count", spec({}, at::kLong)},
                        {"layers.1.up.weight", spec({16, 8}, type)}});
}

constexpr Bytes numbers = 100 * 8 + 16 * 8 + 16 + 16 * 8;
constexpr Bytes whole = 4 * numbers + 8;

const TrainingLayout& way(const Estimate& estimate, int stage, bool optimizer = false, bool parameters = false) {
  for (const auto& layout : estimate.layouts) {
    if (layout.zero_stage == stage && layout.offload_optimizer == optimizer && layout.offload_parameters == parameters)
      return layout;
  }
  throw std::out_of_range("no such way");
}

}  // namespace

TEST_CASE("dotted names become a tree in their order") {
  const auto tree = model();
  REQUIRE(tree.root.children.size() == 2);
  CHECK(tree.root.children[1].name == "layers");
  REQUIRE(tree.root.children[1].children.size() == 2);
  CHECK(tree.root.children[1].children[0].children[0].parameters.size() == 2);
}

TEST_CASE("a row is the size in its type, whatever type is stored") {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const auto estimate = bigmodel::estimate(model(type), {.types = {"float32", "bfloat16", "int8", "int4"}});
    CHECK(estimate.parameters == static_cast<std::int64_t>(numbers) + 1);
    CHECK(estimate.in_float32 == whole);
    CHECK(estimate.rows[0].total == whole);
    CHECK(estimate.rows[1].total == whole / 2);
    CHECK(estimate.rows[2].total == whole / 4);
    CHECK(estimate.rows[3].total == whole / 8);
    CHECK(estimate.rows[0].largest_layer == 3200);
    CHECK(estimate.largest_layers == std::vector<std::string>{"embed"});
    CHECK_FALSE(estimate.rows[2].training.has_value());
  }
  CHECK(bigmodel::estimate(model(at::kHalf), {}).stored == numbers * 2 + 8);
}

TEST_CASE("each ZeRO stage shards more, and offloaded state is counted on the host") {
  const auto estimate = bigmodel::estimate(model(), {.ranks = 4});
  CHECK(way(estimate, 0).device == 4 * whole);
  CHECK(way(estimate, 1).device == 2 * whole + 2 * whole / 4);
  CHECK(way(estimate, 2).device == whole + 3 * whole / 4);
  CHECK(way(estimate, 3).device == 4 * whole / 4 + std::min<Bytes>(2 * 3200, whole));
  CHECK(way(estimate, 2, true).host == 2 * whole / 4);
  CHECK(way(estimate, 2, true).device == whole + whole / 4);
  CHECK(way(estimate, 3, true, true).host == 3 * whole / 4);
  for (const auto& layout : estimate.layouts) CHECK((layout.host > 0) == layout.offload_optimizer);
  // one rank shards nothing
  const auto one_rank = bigmodel::estimate(model(), {});
  CHECK(way(one_rank, 2).device == way(one_rank, 0).device);
}

TEST_CASE("mixed precision keeps master parameters and adds 16-bit gradients") {
  const auto estimate = bigmodel::estimate(model(), {.training_type = "bfloat16"});
  CHECK(way(estimate, 0).device == whole + (whole + whole / 2) + 2 * whole);
}

TEST_CASE("activations grow with the batch, the sequence and the matrices") {
  const Bytes rows_and_columns = 108 + 24 + 24;
  const auto estimate = bigmodel::estimate(model(), {.batch_size = 3, .sequence_length = 5});
  CHECK(estimate.activations == rows_and_columns * 15 * 4);
  CHECK(way(estimate, 0).device == 4 * whole + estimate.activations);
  CHECK(bigmodel::estimate(model(), {}).activations == 0);
}

TEST_CASE("unknown types and untrainable types are refused") {
  CHECK_THROWS_WITH(bigmodel::estimate(model(), {.types = {"float"}}), ContainsSubstring("Unknown type 'float'"));
  CHECK_THROWS_WITH(bigmodel::estimate(model(), {.training_type = "int8"}),
                    ContainsSubstring("Models cannot be trained in int8"));
  CHECK_THROWS_AS(bigmodel::estimate(model(), {.ranks = 0}), UsageError);
  CHECK_THROWS_AS(bigmodel::estimate(model(), {.batch_size = -1}), UsageError);
}

TEST_CASE("the table and the JSON have the same numbers") {
  const auto estimate = bigmodel::estimate(model(), {.ranks = 2});
  const auto text = table(estimate, "net");
  for (const auto* part : {"net: 1073 numbers in 4.2 KiB", "the largest layer is embed", "held in", "bfloat16",
                           "training in float32 on 2 ranks", "ZeRO 3, all on the host"})
    CHECK_THAT(text, ContainsSubstring(part));
  const auto json = nlohmann::json::parse(to_json(estimate, "net"));
  CHECK(json.at("rows").at(0) == nlohmann::json({{"dtype", "float32"},
                                                 {"largest_layer", 3200.0},
                                                 {"total", whole},
                                                 {"training",
                                                  {{"model", whole},
                                                   {"gradients", whole},
                                                   {"optimizer", 2 * whole},
                                                   {"step", 4 * whole},
                                                   {"held", 4 * whole}}}}));
  CHECK(json.at("spreads").size() == estimate.layouts.size());
  CHECK(json.at("ranks") == 2);
}
