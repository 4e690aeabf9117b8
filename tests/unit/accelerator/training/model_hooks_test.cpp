// Hooks around a prepared model's calls, and options of backward() and reduce().
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
