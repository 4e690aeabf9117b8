// A mixture of experts on one rank, against one token after the other.
#include <ATen/ATen.h>
#include <torch/autograd.h>

#include <cmath>
#include <hortator/error.hpp>
#include <hortator/nn/moe.hpp>
#include <limits>
#include <map>
#include <vector>

#include "parallel/experts/routing.hpp"
#include "parallel/experts/token_exchange.hpp"
#include "support/catch.hpp"

using namespace hortator;
using nn::MoE;
using nn::MoEOptions;

namespace {

using Numbers = std::vector<std::int64_t>;

Numbers numbers_of(const at::Tensor& tensor) {
  const auto flat = tensor.to(at::kLong).reshape({-1}).contiguous();
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

/// The choices that experts take, found one after the other.
std::vector<Numbers> taken_one_by_one(const at::Tensor& chosen, std::int64_t experts,
                                      std::optional<std::int64_t> capacity) {
  std::vector<Numbers> taken(static_cast<std::size_t>(experts));
  for (std::int64_t choice = 0; choice < chosen.size(1); ++choice) {
    for (std::int64_t token = 0; token < chosen.size(0); ++token) {
      auto& of_expert = taken[static_cast<std::size_t>(chosen[token][choice].item<std::int64_t>())];
      if (!capacity || static_cast<std::int64_t>(of_expert.size()) < *capacity)
        of_expert.push_back(choice * chosen.size(0) + token);
    }
  }
  return taken;
}

/// What the layer computes, one token and expert after the other.
at::Tensor computed_one_by_one(const MoE& layer, const at::Tensor& tokens) {
  const auto& options = layer->options();
  const auto probabilities = at::softmax(at::linear(tokens, layer->gate->weight), -1);
  const auto [likeliest, chosen] = at::topk(probabilities, options.top_k, -1);
  const auto taken = taken_one_by_one(chosen, options.experts, parallel::capacity_of(options, tokens.size(0)));
  std::vector<at::Tensor> sums(static_cast<std::size_t>(tokens.size(0)), at::zeros({options.width}, tokens.options()));
  for (std::int64_t e = 0; e < options.experts; ++e) {
    for (const auto number : taken[static_cast<std::size_t>(e)]) {
      const auto token = number % tokens.size(0), choice = number / tokens.size(0);
      const auto parts = at::mv(layer->experts->gate_up_proj[e], tokens[token]).chunk(2);
      const auto output = at::mv(layer->experts->down_proj[e], at::silu(parts[0]) * parts[1]);
      auto weight = likeliest[token][choice];
      if (options.normalise) weight = weight / likeliest[token].sum();
      auto& sum = sums[static_cast<std::size_t>(token)];
      sum = sum + weight * output;
    }
  }
  return at::stack(sums);
}

}  // namespace

TEST_CASE("experts with room for all tokens have no limit") {
  for (const double factor : {4.0, 1e300, std::numeric_limits<double>::infinity()})
    CHECK(!parallel::capacity_of({.experts = 4, .top_k = 1, .capacity_factor = factor}, 12));
  CHECK(parallel::capacity_of({.experts = 4, .top_k = 1, .capacity_factor = 1.1}, 12) == 4);
  CHECK(!parallel::capacity_of({.experts = 4, .top_k = 1}, 12));
}

TEST_CASE("experts take first choices first, tokens in their order, and no more than they have room for") {
  at::manual_seed(1);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t experts = 1 + round % 5, top_k = 1 + round % std::min<std::int64_t>(experts, 3);
    const std::int64_t tokens = round % 8;
    const auto chosen = at::argsort(at::rand({tokens, experts}), 1, false).narrow(1, 0, top_k);
    const auto capacity = round % 3 == 0 ? std::nullopt : std::optional<std::int64_t>(round % 4);
    const auto found = parallel::assign(chosen, experts, capacity);
    Numbers choices, counts;
    for (const auto& of_expert : taken_one_by_one(chosen, experts, capacity)) {
      choices.insert(choices.end(), of_expert.begin(), of_expert.end());
      counts.push_back(static_cast<std::int64_t>(of_expert.size()));
    }
    CHECK(numbers_of(found.choices) == choices);
    CHECK(found.counts == counts);
  }
}

TEST_CASE("rows that arrive rank by rank are found expert by expert") {
  for (int ranks = 1; ranks <= 3; ++ranks) {
    for (std::size_t experts = 1; experts <= 3; ++experts) {
      const auto parts = static_cast<std::size_t>(ranks) * experts;
      for (std::size_t code = 0; code<static_cast<std::size_t>(std::pow(3, parts)); code += parts> 6 ? 37 : 1) {
        Numbers arrived;
        std::vector<std::size_t> expert_of;  // of each row, as it arrives
        Numbers from(static_cast<std::size_t>(ranks)), counts(experts);
        auto rest = code;
        for (std::size_t part = 0; part < parts; ++part, rest /= 3) {
          arrived.push_back(static_cast<std::int64_t>(rest % 3));
          expert_of.insert(expert_of.end(), rest % 3, part % experts);
          from[part / experts] += arrived.back();
          counts[part % experts] += arrived.back();
        }
        const auto rows = parallel::arrange(arrived, ranks);
        CHECK(rows.from == from);
        CHECK(rows.counts == counts);
        REQUIRE(rows.order.size() == expert_of.size());
        for (std::size_t i = 1; i < rows.order.size(); ++i) {
          const auto before = static_cast<std::size_t>(rows.order[i - 1]),
                     now = static_cast<std::size_t>(rows.order[i]);
          CHECK(std::pair(expert_of[before], before) < std::pair(expert_of[now], now));
        }
      }
    }
  }
}

TEST_CASE("a mixture of experts computes what its experts compute of each token") {
  at::manual_seed(2);
  for (const auto& options :
       {MoEOptions{.width = 6, .inner = 5, .experts = 4}, MoEOptions{.width = 6, .inner = 5, .experts = 1, .top_k = 1},
        MoEOptions{.width = 6, .inner = 5, .experts = 5, .top_k = 3, .normalise = false},
        MoEOptions{.width = 6, .inner = 5, .experts = 4, .capacity_factor = 0.6},
        MoEOptions{.width = 6, .inner = 5, .experts = 8, .top_k = 1, .normalise = false, .capacity_factor = 1.0}}) {
    MoE layer(options);
    layer->to(at::kDouble);
    for (const std::int64_t rows : {0, 1, 2, 9}) {
      const auto x = at::randn({rows, 3, 6}, at::kDouble).set_requires_grad(true);
      const auto y = layer(x);
      REQUIRE(y.sizes() == x.sizes());
      if (rows == 0) continue;
      const auto expected = computed_one_by_one(layer, x.view({-1, 6})).view(x.sizes());
      CHECK(at::allclose(y, expected, 1e-10, 1e-12));
      const auto factors = at::randn_like(y);
      auto inputs = layer->parameters();
      inputs.push_back(x);
      const auto found = torch::autograd::grad({(y * factors).sum()}, inputs);
      const auto wanted = torch::autograd::grad({(expected * factors).sum()}, inputs);
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(at::allclose(found[i], wanted[i], 1e-9, 1e-11));
    }
  }
}

TEST_CASE("an expert without room drops tokens, and none is dropped without a limit") {
  at::manual_seed(3);
  MoE limited(MoEOptions{.width = 4, .inner = 4, .experts = 4, .top_k = 1, .capacity_factor = 1.0});
  const auto x = at::randn({1, 4}).expand({8, 4});  // all tokens choose the same expert, which has room for two
  const auto y = limited(x);
  CHECK(limited->routing().dropped == 6);
  CHECK(y.narrow(0, 2, 6).abs().max().item<double>() == 0);
  CHECK(y.narrow(0, 0, 2).abs().max().item<double>() > 0);
  MoE dropless(MoEOptions{.width = 4, .inner = 4, .experts = 4, .top_k = 1});
  dropless(x);
  CHECK(dropless->routing().dropped == 0);
}

TEST_CASE("the balance loss is smallest where all experts are used alike, and masked tokens do not count") {
  at::manual_seed(4);
  auto pair = std::make_shared<torch::nn::Module>();
  const MoEOptions options{.width = 5, .inner = 4, .experts = 3, .top_k = 2};
  MoE first(options), second(options);
  pair->register_module("first", first);
  pair->register_module("second", second);
  const auto x = at::randn({2, 7, 5});
  const auto mask = at::tensor({1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1}).view({2, 7});
  first(x);
  second(x * 2);
  for (const auto& counted : {at::Tensor(), mask}) {
    at::Tensor loads = at::zeros({3}), probabilities = at::zeros({3});
    double tokens = 0;
    for (const auto* layer : {&first, &second}) {
      const auto& routing = (*layer)->routing();
      for (std::int64_t token = 0; token < 14; ++token) {
        if (counted.defined() && counted.view({-1})[token].item<int>() == 0) continue;
        ++tokens;
        for (std::int64_t choice = 0; choice < 2; ++choice) loads[routing.chosen[token][choice]] += 1;
        probabilities = probabilities + routing.probabilities[token];
      }
    }
    const auto expected = 3 * (loads / tokens * probabilities / tokens).sum();
    CHECK(at::allclose(nn::load_balancing_loss(*pair, counted), expected, 1e-5, 1e-6));
  }
  at::NoGradGuard no_grad;
  first->gate->weight.zero_();
  first(x);
  CHECK(nn::load_balancing_loss(*first).item<double>() == Approx(2));  // top_k, whatever is chosen
  CHECK(nn::router_z_loss(*first).item<double>() == Approx(std::pow(std::log(3), 2)));
}

TEST_CASE("the balance loss leads a router to use its experts") {
  at::manual_seed(5);
  MoE layer(MoEOptions{.width = 8, .inner = 4, .experts = 4, .top_k = 1});
  const auto x = at::randn({256, 8}) + 1.5;  // one expert is likeliest for most tokens
  const auto largest_load = [&] { return at::bincount(layer->routing().chosen.view({-1})).max().item<std::int64_t>(); };
  layer(x);
  const auto before = largest_load();
  for (int step = 0; step < 200; ++step) {
    layer->zero_grad();
    layer(x);
    nn::load_balancing_loss(*layer).backward();
    const at::NoGradGuard no_grad;
    layer->gate->weight.sub_(layer->gate->weight.grad(), 0.2);
  }
  CHECK(before > 120);  // of 64 if all were used alike
  CHECK(largest_load() < 96);
}

TEST_CASE("what a mixture of experts cannot do is refused with the reason") {
  CHECK_THROWS_WITH(MoE(MoEOptions{.width = 4, .inner = 4, .experts = 2, .top_k = 3}), ContainsSubstring("top_k is 3"));
  CHECK_THROWS_WITH(MoE(MoEOptions{.inner = 4, .experts = 2}), ContainsSubstring("width is 0"));
  CHECK_THROWS_WITH(MoE(MoEOptions{.width = 4, .inner = 4, .experts = 2, .capacity_factor = 0.0}),
                    ContainsSubstring("capacity_factor is 0"));
  MoE layer(MoEOptions{.width = 4, .inner = 4, .experts = 2});
  CHECK_THROWS_WITH(layer(at::ones({2, 5})), ContainsSubstring("the last one must be its width, 4"));
  CHECK_THROWS_WITH(nn::load_balancing_loss(*layer), ContainsSubstring("has not computed anything yet"));
  const torch::nn::Linear other(2, 2);
  CHECK_THROWS_WITH(nn::load_balancing_loss(*other), ContainsSubstring("has no hortator::nn::MoE"));
  layer(at::ones({2, 4}));
  CHECK_THROWS_WITH(nn::load_balancing_loss(*layer, at::ones({3})), ContainsSubstring("a mask of 3 tokens"));
}
