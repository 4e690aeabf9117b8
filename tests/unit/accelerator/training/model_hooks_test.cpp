// Hooks around a prepared model's calls, and options of backward() and reduce().
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "accelerator/structures/reducing.hpp"
#include "accelerator/training/training.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;

TEST_CASE("hooks run before and after forward, in the order in which they were added, until they are removed") {
  Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  std::string calls;
  auto first = model.add_hook({.before_forward =
                                   [&](torch::nn::Module& module) {
                                     CHECK(&module == net.get());
                                     calls += "a";
                                   },
                               .after_forward = [&](torch::nn::Module&, std::vector<at::Tensor>&) { calls += "b"; }});
  model.add_hook({.before_forward = [&](torch::nn::Module&) { calls += "c"; }});
  const auto input = at::ones({2, 3});
  const auto expected = net->forward(input);
  CHECK(at::equal(model(input), expected));
  CHECK(calls == "acb");
  auto same_model = accelerator.prepare(model);  // hooks belong to the model, not to its handle
  same_model(input);
  CHECK(calls == "acbacb");
  first.remove();
  model(input);
  CHECK(calls == "acbacbc");
}

TEST_CASE("a hook after forward replaces results, which backward passes through") {
  Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  auto hook = model.add_hook({.after_forward = [](torch::nn::Module&, std::vector<at::Tensor>& results) {
    REQUIRE(results.size() == 1);
    results[0] = results[0] * 3;
  }});
  const auto input = at::full({2, 3}, 0.1 * (accelerator.process_index() + 1));
  const auto result = model(input);
  CHECK(at::allclose(result, net->forward(input) * 3));
  accelerator.backward(result.sum());
  const auto gradient = net->out->weight.grad().clone();
  CHECK(test::same_on_all_ranks(accelerator, gradient));
  net->zero_grad();
  hook.remove();
  accelerator.backward(model(input).sum());
  CHECK(at::allclose(gradient, net->out->weight.grad() * 3));
}

TEST_CASE("hooks of results in structures, of none, and hooks that fail") {
  Accelerator accelerator;
  struct PairImpl : torch::nn::Module {
    PairImpl() { register_module("linear", linear); }
    std::pair<at::Tensor, std::vector<at::Tensor>> forward(const at::Tensor& x) { return {linear(x), {x, x + 1}}; }
    torch::nn::Linear linear{3, 3};
  };
  struct SilentImpl : torch::nn::Module {
    SilentImpl() { register_module("linear", linear); }
    void forward() { ++calls; }
    torch::nn::Linear linear{3, 3};
    int calls = 0;
  };
  auto pair = accelerator.prepare(std::make_shared<PairImpl>());
  std::size_t seen = 0;
  const auto count = [&](torch::nn::Module&, std::vector<at::Tensor>& results) { seen = results.size(); };
  pair.add_hook({.after_forward = count});
  pair(at::ones({1, 3}));
  CHECK(seen == 3);
  auto silent = accelerator.prepare(std::make_shared<SilentImpl>());
  silent.add_hook({.after_forward = count});
  silent();
  CHECK(seen == 0);
  auto fails = pair.add_hook({.before_forward = [](torch::nn::Module&) { throw std::runtime_error("of a hook"); }});
  CHECK_THROWS_WITH(pair(at::ones({1, 3})), ContainsSubstring("of a hook"));
  fails.remove();
  pair.add_hook({.after_forward = [](torch::nn::Module&, std::vector<at::Tensor>& results) { results.pop_back(); }});
  CHECK_THROWS_WITH(pair(at::ones({1, 3})), ContainsSubstring("left 2 results of 3"));
}

TEST_CASE("hooks read and replace forward's arguments, one after the other, and the caller keeps its own") {
  Accelerator accelerator;
  struct Inputs {
    at::Tensor x;
    std::vector<at::Tensor> more;
  };
  struct TakerImpl : torch::nn::Module {
    TakerImpl() { register_module("linear", linear); }
    at::Tensor forward(const at::Tensor& first, Inputs& inputs, const std::string& name, std::optional<at::Tensor> none,
                       std::unique_ptr<int> moved) {
      seen = name + std::to_string(*moved) + (none ? "set" : "unset");
      auto result = linear(first + inputs.x + inputs.more.at(0));
      inputs.more.at(0) = result;  // an output
      return result;
    }
    torch::nn::Linear linear{3, 3};
    std::string seen;
  };
  const auto net = std::make_shared<TakerImpl>();
  auto model = accelerator.prepare(net);
  std::size_t count = 0;
  auto first = model.add_hook({.on_arguments = [&](torch::nn::Module& module, std::vector<at::Tensor>& arguments) {
    CHECK(&module == net.get());
    count = arguments.size();
    arguments[0] = arguments[0] * 2;
    arguments[1] = arguments[1] + 1;
  }});
  auto second = model.add_hook({.on_arguments = [](torch::nn::Module&, std::vector<at::Tensor>& arguments) {
    arguments[0] = arguments[0] * 3;
  }});
  const auto x = at::ones({2, 3}), y = at::full({2, 3}, 2.0), z = at::full({2, 3}, 3.0);
  Inputs inputs{y, {z}};
  const auto call = [&] { return model(x, inputs, "name", std::nullopt, std::make_unique<int>(7)); };
  const auto result = call();
  CHECK(at::equal(result, net->linear(x * 6 + y + 1 + z)));
  CHECK(net->seen == "name7unset");
  CHECK(count == 3);
  CHECK(at::equal(x, at::ones({2, 3})));
  CHECK(inputs.x.is_same(y));
  CHECK(inputs.more[0].is_same(result));  // what forward has written stays
  first.remove();
  second.remove();
  inputs.more[0] = z;
  CHECK(at::equal(call(), net->linear(x + y + z)));
  auto fails = model.add_hook({.on_arguments = [](torch::nn::Module&, auto& arguments) { arguments.pop_back(); }});
  inputs.more[0] = z;
  CHECK_THROWS_WITH(call(), ContainsSubstring("before a model's forward left 2 arguments of 3"));
  CHECK(inputs.x.is_same(y));
}

TEST_CASE("layers that a Sequential calls have hooks, also where they are recomputed") {
  for (const bool recomputed : {false, true}) {
    Accelerator accelerator;
    torch::nn::Sequential net(torch::nn::Linear(3, 3), torch::nn::Tanh(), torch::nn::Linear(3, 3));
    if (recomputed) recompute_layers(net, {.names = {"2"}});
    auto model = accelerator.prepare(net);
    const auto x = at::full({2, 3}, 0.1 * (accelerator.process_index() + 1));
    const auto plain = model(x);
    std::string calls;
    auto scaled = model.add_hook(
        "2", {.before_forward =
                  [&](torch::nn::Module& layer) {
                    CHECK(layer.as<torch::nn::Linear>() != nullptr);
                    calls += 'a';
                  },
              .on_arguments = [](torch::nn::Module&, auto& arguments) { arguments[0] = arguments[0] * 2; }});
    auto doubled = model.add_hook("2", {.after_forward = [&](torch::nn::Module&, auto& results) {
                                    calls += 'b';
                                    results[0] = results[0] * 3;
                                  }});
    const auto* const last = net->children().at(2)->as<torch::nn::Linear>();
    const auto hidden = at::tanh(net->children().at(0)->as<torch::nn::Linear>()->forward(x));
    const auto result = model(x);
    CHECK(at::allclose(result, 3 * at::linear(hidden * 2, last->weight, last->bias)));
    CHECK(calls == "ab");
    accelerator.backward(result.sum());
    CHECK(calls == "ab");  // recomputation runs the layer, not the hooks around it
    CHECK(test::same_on_all_ranks(accelerator, last->weight.grad()));
    CHECK(net->named_parameters().contains("2.weight"));
    scaled.remove();
    doubled.remove();
    CHECK(at::equal(model(x), plain));
    CHECK_THROWS_WITH(model.add_hook("3", {}), ContainsSubstring("has a layer '3'"));
    CHECK_THROWS_WITH(net->clone(), ContainsSubstring("cannot be cloned"));
  }
  Accelerator accelerator;
  Net net;
  CHECK_THROWS_WITH(accelerator.prepare(net).add_hook("hidden", {}), ContainsSubstring("has a layer 'hidden'"));
}

TEST_CASE("gradients flow to what a hook has made of the arguments, and average over ranks") {
  Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  const auto scale = at::full({}, 2.0).requires_grad_();
  model.add_hook(
      {.on_arguments = [&](torch::nn::Module&, auto& arguments) { arguments.at(0) = arguments[0] * scale; }});
  accelerator.backward(model(at::full({2, 3}, 0.1 * (accelerator.process_index() + 1))).sum());
  CHECK(scale.grad().defined());
  CHECK(test::same_on_all_ranks(accelerator, net->hidden->weight.grad()));
}

TEST_CASE("a hook sees results in fp32 under mixed precision") {
  Accelerator accelerator({.mixed_precision = Precision::bf16});
  Net net;
  auto model = accelerator.prepare(net);
  auto type = at::kLong;
  model.add_hook({.after_forward = [&](torch::nn::Module&, std::vector<at::Tensor>& results) {
    type = results.at(0).scalar_type();
  }});
  model(at::ones({2, 3}));
  CHECK(type == at::kFloat);
}

TEST_CASE("two backward passes go through a graph that is retained, and average over ranks") {
  for (const bool is_sum : {false, true}) {
    Accelerator accelerator;
    Net net;
    auto model = accelerator.prepare(net);
    const auto loss = model(at::full({2, 3}, 0.1 * (accelerator.process_index() + 1))).sum();
    const auto pass = [&](const BackwardOptions& options) {
      is_sum ? accelerator.backward(loss, 1.0, options) : accelerator.backward(loss, options);
    };
    pass({.retain_graph = true});
    const auto once = net->hidden->weight.grad().clone();
    CHECK(test::same_on_all_ranks(accelerator, once));
    net->zero_grad();
    pass({});
    CHECK(at::equal(net->hidden->weight.grad(), once));
    CHECK_THROWS_WITH(pass({}), ContainsSubstring("second time"));
  }
}

TEST_CASE("reduce multiplies by the scale, and refuses one for whole numbers") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  const auto mine = at::full({2}, accelerator.process_index() + 1.0);
  CHECK(accelerator.reduce(mine, Reduce::sum, 0.5)[0].item<double>() == n * (n + 1) / 4.0);
  CHECK(accelerator.reduce(mine, Reduce::max, 2)[1].item<double>() == 2.0 * n);
  CHECK(mine[0].item<double>() == accelerator.process_index() + 1.0);
  const auto both = accelerator.reduce(std::vector<at::Tensor>{mine, at::ones({1})}, Reduce::sum, 3);
  CHECK(both[0][0].item<double>() == 3 * n * (n + 1) / 2);
  CHECK(both[1][0].item<double>() == 3 * n);
  CHECK_THROWS_WITH(accelerator.reduce(at::ones({1}, at::kLong), Reduce::sum, 0.5),
                    ContainsSubstring("the scale 0.5 got a tensor of type Long"));
  CHECK(accelerator.reduce(at::ones({1}, at::kLong))[0].item<int>() == n);
}

TEST_CASE("reduce with a scale changes no tensor of a structure in which one has whole numbers") {
  Accelerator accelerator;
  const std::vector<at::Tensor> both = {at::ones({2}), at::ones({1}, at::kLong)};
  std::vector<hortator::detail::Leaf> leaves;
  auto in_place = both;
  for (auto& tensor : in_place) leaves.push_back({.path = "x", .tensor = &tensor});
  const auto& averaging = accelerator::Training::of(accelerator).averaging();
  CHECK_THROWS_WITH(accelerator::reduce(averaging, leaves, Reduce::sum, 0.5),
                    ContainsSubstring("a tensor of type Long"));
  CHECK(in_place[0].is_same(both[0]));
  CHECK(in_place[1].is_same(both[1]));
}
