// Training over divided sequences against ranks that have whole ones.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cstring>
#include <functional>
#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>
#include <hortator/parallel/collectives.hpp>
#include <hortator/training/recompute.hpp>
#include <vector>

#include "mpi/collectives.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"
#include "unit/accelerator/first_ranks.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t vocabulary = 31;
constexpr std::int64_t width = 16;

/// A user's own transformer: it knows nothing of ranks, and gets the positions of its tokens.
struct DecoderImpl : torch::nn::Module {
  explicit DecoderImpl(bool recomputes = false) : recomputes_(recomputes) {
    for (int i = 0; i < 2; ++i) {
      const auto name = std::to_string(i);
      norms.push_back(register_module("norm" + name, torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}))));
      mixes.push_back(register_module("mix" + name, torch::nn::Linear(width, 3 * width)));
      outs.push_back(register_module("out" + name, torch::nn::Linear(width, width)));
    }
  }
  at::Tensor attend(std::size_t i, const at::Tensor& x) {
    const auto shape = x.sizes();
    const auto parts = mixes[i](norms[i](x)).view({shape[0], shape[1], 3, 2, width / 2}).permute({2, 0, 3, 1, 4});
    const auto mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt, 0, true);
    return x + outs[i](at::gelu(mixed.transpose(1, 2).flatten(2)));
  }
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& positions) {
    auto x = tokens(ids) + places(positions);
    for (std::size_t i = 0; i < mixes.size(); ++i) {
      const auto layer = [this, i](const at::Tensor& before) { return attend(i, before); };
      x = recomputes_ ? recompute(layer, x) : layer(x);
    }
    return head(x);
  }
  bool recomputes_;
  torch::nn::Embedding tokens = register_module("tokens", torch::nn::Embedding(vocabulary, width));
  torch::nn::Embedding places = register_module("places", torch::nn::Embedding(64, width));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(width, vocabulary));
  std::vector<torch::nn::LayerNorm> norms;
  std::vector<torch::nn::Linear> mixes, outs;
};
TORCH_MODULE(Decoder);

struct Texts {
  std::int64_t length;
  std::size_t size() const { return 24; }
  Example<> get(std::int64_t i) const {
    const auto ids = at::arange(length + 1).mul(i + 3).add(i * i).remainder(vocabulary);
    return {ids.narrow(0, 0, length), ids.narrow(0, 1, length)};
  }
};

struct Plan {
  std::int64_t length = 24;
  std::int64_t steps = test::many_steps();
  bool by_counts = false;
  bool recomputes = false;
};

struct Course {
  std::vector<float> losses = {};
  std::vector<float> weights = {};
};

void append(std::vector<float>& to, const at::Tensor& tensor) {
  const auto values = tensor.detach().reshape({-1}).to(at::kFloat).contiguous();
  to.insert(to.end(), values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
}

Course train(AcceleratorOptions options, const Plan& plan) {
  Accelerator accelerator(std::move(options));
  set_seed(7);
  Decoder net(plan.recomputes);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto [model, optimizer, loader] =
      accelerator.prepare(net, sgd, data_loader(Texts{plan.length}, {.batch_size = 2, .shuffle = true}));
  Course course;
  for (std::int64_t step = 0; step < plan.steps;) {
    for (auto batch : loader) {
      if (step++ >= plan.steps) break;
      const auto divided = accelerator.maybe_context_parallel({{&batch.data, 1}, {&batch.target, 1}});
      const auto logits = model(batch.data, divided.positions());
      const auto sum = at::cross_entropy_loss(logits.flatten(0, 1), batch.target.flatten(), {}, at::Reduction::Sum);
      const auto count = static_cast<double>(batch.target.numel());
      const auto all = accelerator.reduce(at::stack({sum.detach(), at::full({}, count)}));
      append(course.losses, all[0] / all[1]);
      if (plan.by_counts) {
        accelerator.backward(sum, count);
      } else {
        accelerator.backward(sum / count);
      }
      accelerator.clip_grad_norm_(model.parameters(), 1.0);
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  {
    const auto whole = accelerator.summon_full_parameters(model);
    for (const auto& parameter : net->parameters()) append(course.weights, parameter);
  }
  accelerator.wait_for_everyone();
  return course;
}

/// The course of the first `ranks` ranks, on all ranks.
Course course_of_first(int ranks, const Plan& plan) {
  Course course;
  {
    const test::FirstRanks first(ranks);
    AcceleratorOptions options;
    options.communicator = first.handle();
    if (first.is_in()) course = train(options, plan);
  }
  const auto world = mpi::Communicator::world();
  for (auto* numbers : {&course.losses, &course.weights}) {
    const auto bytes = mpi::broadcast(
        world, std::string_view(reinterpret_cast<const char*>(numbers->data()), numbers->size() * sizeof(float)), 0);
    numbers->resize(bytes.size() / sizeof(float));
    std::memcpy(numbers->data(), bytes.data(), bytes.size());
  }
  return course;
}

void check_near(const Course& actual, const Course& expected) {
  for (const auto& [mine, theirs] :
       {std::pair(&actual.losses, &expected.losses), std::pair(&actual.weights, &expected.weights)}) {
    REQUIRE(mine->size() == theirs->size());
    double worst = 0;
    for (std::size_t i = 0; i < mine->size(); ++i)
      worst = hortator::test::larger(worst, std::abs(static_cast<double>((*mine)[i]) - (*theirs)[i]));
    CHECK(worst < 1e-5);
  }
}

}  // namespace

TEST_CASE("50 steps over divided sequences have the losses and weights of ranks with whole sequences") {
  const int ranks = State().num_processes();
  for (const int context : {2, 4}) {
    if (ranks % context != 0) continue;
    for (const int stage : {0, 1, 2, 3}) {
      INFO("context " << context << ", stage " << stage);
      check_near(train({.zero = {.stage = stage}, .parallel = {.context = context}}, {}),
                 course_of_first(ranks / context, {}));
    }
  }
}

TEST_CASE("50 steps with keys that travel in a ring have the losses and weights of ranks with whole sequences") {
  const int ranks = State().num_processes();
  for (const int context : {2, 4}) {
    if (ranks % context != 0) continue;
    for (const int stage : {0, 3}) {
      INFO("context " << context << ", stage " << stage);
      check_near(train({.zero = {.stage = stage},
                        .parallel = {.context = context, .context_attention = ContextAttention::ring}},
                       {}),
                 course_of_first(ranks / context, {}));
    }
    const Plan recomputed = {.length = 23, .steps = 20, .by_counts = true, .recomputes = true};
    check_near(train({.parallel = {.context = context, .context_attention = ContextAttention::ring}}, recomputed),
               course_of_first(ranks / context, recomputed));
  }
}

TEST_CASE("ranks with different numbers of tokens count them, and recomputed layers attend to all keys again") {
  const int ranks = State().num_processes();
  if (ranks % 2 != 0) return;
  const Plan plan = {.length = 23, .steps = 20, .by_counts = true, .recomputes = true};
  check_near(train({.parallel = {.context = 2}}, plan), course_of_first(ranks / 2, plan));
}

TEST_CASE("an axis context beside an axis tensor") {
  if (State().num_processes() != 4) return;
  const TensorPlan one_head_a_rank = {
      {.pattern = "mix*", .division = TensorDivision::columns, .blocks = 3, .unit = width / 2},
      {.pattern = "out*", .division = TensorDivision::rows, .unit = width / 2}};
  for (const auto& plan : {TensorPlan{{.pattern = "*"}}, one_head_a_rank})
    check_near(train({.parallel = {.tensor = 2, .context = 2, .plan = plan}}, {.steps = 20}),
               course_of_first(1, {.steps = 20}));
}

TEST_CASE("buffers are whole again afterwards, and one rank has whole sequences") {
  const State state;
  const Accelerator accelerator({.parallel = {.context = state.num_processes()}});
  const auto whole = at::arange(48).view({2, 24});
  auto ids = whole;
  auto rows = whole.t();
  {
    const auto divided = accelerator.maybe_context_parallel({{&ids, 1}, {&rows, 0}});
    CHECK(ids.size(1) == divided.positions().numel());
    CHECK(at::equal(ids, whole.index_select(1, divided.positions())));
    CHECK(at::equal(rows, ids.t()));
    const auto all = parallel::all_gather(divided.positions(), parallel::Axis::context);
    CHECK(at::equal(std::get<0>(all.sort()), at::arange(24)));
  }
  CHECK(at::equal(ids, whole));
  CHECK(at::equal(rows, whole.t()));
}

TEST_CASE("what cannot be divided is refused with the reason") {
  const State state;
  const Accelerator accelerator({.parallel = {.context = state.num_processes()}});
  auto ids = at::ones({2, 24}, at::kLong);
  auto other = at::ones({2, 23}, at::kLong);
  CHECK_THROWS_WITH(accelerator.maybe_context_parallel({}), ContainsSubstring("got no buffers"));
  CHECK_THROWS_WITH(accelerator.maybe_context_parallel({{&ids, 1}, {&other, 1}}),
                    ContainsSubstring("the others have 24 tokens"));
  CHECK_THROWS_WITH(accelerator.maybe_context_parallel({{&ids, 2}}), ContainsSubstring("dimension 2"));
  CHECK_THROWS_WITH(accelerator.maybe_context_parallel({{&ids, 1}, {&ids, 1}}), ContainsSubstring("[2, 24] twice"));
  CHECK(ids.size(1) == 24);
  if (state.num_processes() == 1) return;
  auto one = at::ones({2, 1}, at::kLong);
  CHECK_THROWS_WITH(accelerator.maybe_context_parallel({{&one, 1}}), ContainsSubstring("was to be divided"));
  const auto divided = accelerator.maybe_context_parallel({{&ids, 1}});
  const auto part = at::ones({1, 1, ids.size(1), 4});
  const auto local_mask = at::ones({ids.size(1), ids.size(1)}, at::kBool).tril();
  CHECK_THROWS_WITH(at::scaled_dot_product_attention(part, part, part, local_mask),
                    ContainsSubstring("must run along the keys of the whole sequence"));
  CHECK_THROWS_WITH(accelerator.maybe_context_parallel({{&other, 1}}), ContainsSubstring("within another one"));
}
