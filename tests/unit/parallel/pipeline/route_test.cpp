// The route of a module's forward through the stages of a pipeline, and the parts between which it is cut.
#include "parallel/pipeline/plain/route.hpp"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <random>
#include <set>

#include "parallel/pipeline/layer_units.hpp"
#include "parallel/pipeline/plain/tensor_stages.hpp"
#include "support/catch.hpp"

using namespace hortator::parallel;

TEST_CASE("a stage gets what it and later stages use of earlier ones, once") {
  RouteBuilder builder(3);
  int op = 0;
  const auto add = [&](int stage, std::vector<ValueId> uses) {
    builder.add({.op = &op, .is_staged = true}, stage, uses);
  };
  add(0, {});                // 0
  add(0, {{0, 0}});          // 1
  add(1, {{1, 0}});          // 2
  add(1, {{2, 0}, {1, 0}});  // 3
  add(2, {{3, 0}, {0, 0}});  // 4: the first result goes through stage 1
  const auto route = std::move(builder).finish();
  CHECK(route.begins == std::vector<std::int64_t>{0, 2, 4});
  CHECK((route.messages == std::vector<std::vector<ValueId>>{{}, {{0, 0}, {1, 0}}, {{0, 0}, {3, 0}}}));
  CHECK(route.stage_of(0) == 0);
  CHECK(route.stage_of(3) == 1);
  CHECK(route.stage_of(4) == 2);
  CHECK(route.carries({0, 0}));
  CHECK(!route.carries({2, 0}));
}

TEST_CASE("routes of random programs bring each stage all that it uses, and nothing else") {
  std::mt19937 random(7);
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int round = 0; round < 20000; ++round) {
    const int stages = 1 + draw(5), ops = stages + draw(20);
    RouteBuilder builder(stages);
    std::vector<int> stage_of;
    std::vector<std::vector<ValueId>> uses(static_cast<std::size_t>(ops));
    for (int op = 0; op < ops; ++op) {
      const int left = ops - op - 1;
      const int least = std::max(builder.stage(), stages - 1 - left);
      const int stage = std::min(stages - 1, std::max(least, builder.stage() + (op > 0 && draw(3) == 0 ? 1 : 0)));
      for (int use = draw(3); op > 0 && use > 0; --use)
        uses[static_cast<std::size_t>(op)].push_back({.op = draw(op), .result = draw(2)});
      builder.add({}, stage, uses[static_cast<std::size_t>(op)]);
      stage_of.push_back(stage);
    }
    const auto route = std::move(builder).finish();
    std::vector<std::set<ValueId>> wanted(static_cast<std::size_t>(stages));
    for (int op = 0; op < ops; ++op) {
      CHECK(route.stage_of(op) == stage_of[static_cast<std::size_t>(op)]);
      for (const auto& value : uses[static_cast<std::size_t>(op)]) {
        const int from = stage_of[static_cast<std::size_t>(value.op)];
        for (int to = from + 1; to <= stage_of[static_cast<std::size_t>(op)]; ++to)
          wanted[static_cast<std::size_t>(to)].insert(value);
      }
    }
    for (int stage = 0; stage < stages; ++stage) {
      const auto& message = route.messages[static_cast<std::size_t>(stage)];
      CHECK((std::set<ValueId>(message.begin(), message.end()) == wanted[static_cast<std::size_t>(stage)]));
      CHECK(message.size() == wanted[static_cast<std::size_t>(stage)].size());
    }
  }
}

TEST_CASE("memory that a stage gets in two places is split") {
  RouteBuilder builder(2);
  builder.add({}, 0, {});
  builder.add({}, 0, std::vector<ValueId>{{0, 0}});
  builder.note_alias({1, 0}, {0, 0});
  builder.add({}, 1, std::vector<ValueId>{{0, 0}});
  CHECK(!builder.is_split({0, 0}));
  builder.add({}, 1, std::vector<ValueId>{{1, 0}});
  CHECK(builder.is_split({0, 0}));
  CHECK(builder.is_split({1, 0}));
}

TEST_CASE("parts of a module are its children, and the layers of lists, in their order") {
  struct Inner : torch::nn::Module {
    torch::nn::Linear a = register_module("a", torch::nn::Linear(8, 8));
    torch::nn::Linear b = register_module("b", torch::nn::Linear(2, 2));
  };
  struct Outer : torch::nn::Module {
    torch::nn::Linear first = register_module("first", torch::nn::Linear(2, 2));
    torch::nn::ModuleList layers = register_module(
        "layers", torch::nn::ModuleList(torch::nn::Linear(2, 2), torch::nn::Sequential(torch::nn::Linear(2, 2))));
    std::shared_ptr<Inner> inner = register_module("inner", std::make_shared<Inner>());
    torch::nn::Linear last = register_module("last", torch::nn::Linear(2, 2));
  };
  const Outer net;
  CHECK(layer_units(net, 2) == std::vector<std::string>{"first", "layers.0", "layers.1.0", "inner", "last"});
  CHECK(layer_units(net, 6) ==
        std::vector<std::string>{"first", "layers.0", "layers.1.0", "inner.a", "inner.b", "last"});
  CHECK(layer_units(net, 9).size() == 6);
}

TEST_CASE("a tied tensor is read in its stages in turn") {
  const TensorStages::Entry tied{.name = "words", .stages = {0, 3}};
  ReadsInTurn reads;
  CHECK(reads.stage_of_next(tied, 0) == 0);
  CHECK(reads.stage_of_next(tied, 2) == 3);
  CHECK(reads.stage_of_next(tied, 3) == 3);
  const TensorStages::Entry once{.name = "head", .stages = {1}};
  CHECK(reads.stage_of_next(once, 0) == 1);
  CHECK(reads.stage_of_next(once, 1) == 1);
  CHECK(reads.stage_of_next(once, 2) == 1);  // too late
}
