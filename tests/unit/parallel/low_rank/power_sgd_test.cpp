#include "parallel/low_rank/power_sgd.hpp"

#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <limits>

#include "parallel/data_parallel/gradient_reducer.hpp"
#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::ReducerFixture;

namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;

/// A bucket of its own memory, whose sums count what they send.
struct Bucket {
  Bucket(ReducerFixture& fixture, const Named& gradients) : fixture_(fixture) {
    std::int64_t elements = 0;
    for (const auto& [name, gradient] : gradients) elements += gradient.numel();
    exchange.gradients = at::zeros({elements}, gradients.front().second.options());
    exchange.rank = fixture.rank;
    exchange.ranks = fixture.size;
    exchange.sum = [this](const at::Tensor& tensor) {
      sent += tensor.numel();
      ++messages;
      fixture_.communicator.all_reduce(tensor, comm::ReduceOp::sum).wait();
    };
    std::int64_t begin = 0;
    for (const auto& [name, gradient] : gradients) {
      auto place = exchange.gradients.narrow(0, begin, gradient.numel()).view(gradient.sizes());
      place.copy_(gradient);
      exchange.parts.push_back({.name = name, .gradient = place});
      begin += gradient.numel();
    }
  }
  const at::Tensor& gradient(std::size_t i) const { return exchange.parts.at(i).gradient; }

  BucketExchange exchange;
  std::int64_t sent = 0, messages = 0;

 private:
  ReducerFixture& fixture_;
};

/// The same on all ranks.
at::Tensor random(std::uint64_t seed, at::IntArrayRef sizes) {
  return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed), at::kDouble).to(at::kFloat);
}

at::Tensor mean_over_ranks(ReducerFixture& f, const at::Tensor& mine) {
  auto sum = mine.clone();
  f.communicator.all_reduce(sum, comm::ReduceOp::mean).wait();
  return sum;
}

PowerSGDOptions at_once(std::int64_t rank) {
  return {.rank = rank, .start_step = 0, .warm_start = false, .error_feedback = false};
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).norm().item<double>() / b.norm().item<double>();
}

}  // namespace

TEST_CASE("PowerSGD sends two thin factors of a matrix, and everything else whole, in two messages") {
  ReducerFixture f;
  parallel::PowerSgd power(at_once(2));
  const auto mine = static_cast<std::uint64_t>(f.rank);
  Bucket bucket(
      f,
      {{"bias", random(mine, {7})}, {"weight", random(10 + mine, {40, 3, 10})}, {"thin", random(20 + mine, {4, 5})}});
  const auto bias = mean_over_ranks(f, bucket.gradient(0)), thin = mean_over_ranks(f, bucket.gradient(2));
  power.average(bucket.exchange);
  CHECK(bucket.messages == 2);
  CHECK(bucket.sent == 7 + 20 + 40 * 2 + 30 * 2);
  CHECK(at::allclose(bucket.gradient(0), bias));
  CHECK(at::allclose(bucket.gradient(2), thin));
  auto of_first = bucket.gradient(1).clone();
  f.communicator.broadcast(of_first, 0).wait();
  CHECK(at::equal(bucket.gradient(1), of_first));
  const auto singular = at::linalg_svdvals(bucket.gradient(1).reshape({40, 30}));
  CHECK(singular[1].item<double>() > 0.1);
  CHECK(singular[2].item<double>() < 1e-5);
}

TEST_CASE("PowerSGD averages matrices of few dimensions exactly") {
  ReducerFixture f;
  parallel::PowerSgd power(at_once(3));
  const auto left = random(1, {50, 3});
  Bucket bucket(f, {{"weight", left.mm(random(2 + static_cast<std::uint64_t>(f.rank), {3, 60}))}});
  const auto mean = mean_over_ranks(f, bucket.gradient(0));
  power.average(bucket.exchange);
  CHECK(distance(bucket.gradient(0), mean) < 1e-5);
}

TEST_CASE("with a warm start PowerSGD comes to the best approximation of its rank") {
  ReducerFixture f;
  parallel::PowerSgd power({.rank = 4, .start_step = 2, .error_feedback = false});
  const auto values = at::logspace(0, -2, 40, 10, at::kFloat);
  const auto of_all = std::get<0>(at::linalg_qr(random(1, {60, 40}))) * values;
  const auto common = of_all.mm(std::get<0>(at::linalg_qr(random(2, {50, 40}))).t());
  const auto mine = common + (f.rank - f.mean_rank) * 0.1 * random(3, {60, 50});  // the ranks' mean is `common`
  at::Tensor last;
  for (int pass = 1; pass <= 40; ++pass) {
    Bucket bucket(f, {{"weight", mine}});
    power.average(bucket.exchange);
    last = bucket.gradient(0).clone();
    if (pass <= 2) {
      INFO("the first passes are whole");
      CHECK(at::allclose(last, common, 1e-4, 1e-5));
      CHECK(bucket.sent == 3000);
    }
  }
  const auto [u, s, v] = at::linalg_svd(common, /*full_matrices=*/false);
  const auto best = (u.narrow(1, 0, 4) * s.narrow(0, 0, 4)).mm(v.narrow(0, 0, 4));
  CHECK(distance(last, best) < 0.02);
}

TEST_CASE("what PowerSGD has not sent stays in the ranks' errors: nothing is lost") {
  ReducerFixture f;
  parallel::PowerSgd power({.rank = 1, .start_step = 2});
  auto sum_of_means = at::zeros({30, 20}), sum_of_results = at::zeros({30, 20});
  for (std::uint64_t pass = 0; pass < 12; ++pass) {
    Bucket bucket(f, {{"weight", random(100 * pass + static_cast<std::uint64_t>(f.rank), {30, 20})}});
    sum_of_means += mean_over_ranks(f, bucket.gradient(0));
    power.average(bucket.exchange);
    sum_of_results += bucket.gradient(0);
  }
  const auto error = mean_over_ranks(f, power.state().get<at::Tensor>("error/weight"));
  CHECK(error.norm().item<double>() > 1);
  CHECK(at::allclose(sum_of_results + error, sum_of_means, 1e-3, 1e-4));
}

TEST_CASE("a pass with infinite gradients leaves NaN, and PowerSGD's errors and factors as they were") {
  ReducerFixture f;
  const PowerSGDOptions options{.rank = 1, .start_step = 2};
  parallel::PowerSgd one(options), other(options);
  const auto pass = [&](parallel::PowerSgd& power, std::uint64_t number, bool is_infinite) {
    auto gradient = random(100 * number + static_cast<std::uint64_t>(f.rank), {30, 20});
    if (is_infinite && f.rank == f.size - 1) gradient[3][4] = std::numeric_limits<float>::infinity();
    Bucket bucket(f, {{"weight", gradient}});
    power.average(bucket.exchange);
    return bucket.gradient(0).clone();
  };
  for (std::uint64_t number = 0; number < 5; ++number) {
    pass(one, number, false);
    pass(other, number, false);
  }
  CHECK(pass(one, 9, true).isnan().all().item<bool>());
  CHECK(at::allclose(pass(one, 5, false), pass(other, 5, false), 1e-4, 1e-4));
}

TEST_CASE("PowerSGD continues from its state, on other ranks with the mean of all errors") {
  ReducerFixture f;
  const PowerSGDOptions options{.rank = 2, .start_step = 2};
  parallel::PowerSgd whole(options), resumed(options), elsewhere(options);
  const auto pass = [&](parallel::PowerSgd& power, std::uint64_t number) {
    Bucket bucket(f, {{"weight", random(100 * number + static_cast<std::uint64_t>(f.rank), {30, 20})}});
    power.average(bucket.exchange);
    return bucket.gradient(0).clone();
  };
  for (std::uint64_t number = 0; number < 6; ++number) pass(whole, number);
  const auto saved = whole.state();
  const auto error = saved.get<at::Tensor>("error/weight");
  std::vector<StateDict> of_ranks(static_cast<std::size_t>(f.size));
  for (int rank = 0; rank < f.size; ++rank) {
    auto copy = error.clone();
    f.communicator.broadcast(copy, rank).wait();
    auto& state = of_ranks[static_cast<std::size_t>(rank)];
    state.put("passes", std::int64_t{6});
    state.put("error/weight", copy);
    state.put("factor/weight", saved.get<at::Tensor>("factor/weight"));
  }
  CHECK_FALSE(resumed.load(of_ranks, static_cast<std::size_t>(f.rank)));
  CHECK_FALSE(elsewhere.load(of_ranks, std::nullopt));
  CHECK(at::allclose(elsewhere.state().get<at::Tensor>("error/weight"), mean_over_ranks(f, error), 1e-4, 1e-5));
  const auto undo = whole.remember();
  const auto expected = pass(whole, 6);
  CHECK(at::equal(pass(resumed, 6), expected));
  CHECK(at::allclose(pass(elsewhere, 6), expected, 1e-3, 1e-4));
  pass(whole, 7);
  undo();
  CHECK(at::equal(pass(whole, 6), expected));
  of_ranks.push_back(of_ranks.front());
  of_ranks.back().put("error/weight", at::zeros({3, 3}));
  CHECK(elsewhere.load(of_ranks, std::nullopt));
}

TEST_CASE("PowerSGD trains through the buckets of a model") {
  ReducerFixture f;
  if (f.alone()) return;
  f.options.comm_hook = DDPCommunicationHookType::power_sgd;
  parallel::PowerSgd power(at_once(1));
  const BucketHook hook = [&](BucketExchange& bucket) { power.average(bucket); };
  auto data_parallel = f.parallel();
  data_parallel.own_average = std::make_shared<const BucketHook>(hook);
  auto weight = at::ones({8, 8}).requires_grad_(), bias = at::ones({8}).requires_grad_();
  parallel::GradientReducer reducer({{"weight", weight}, {"bias", bias}}, data_parallel);
  for (int pass = 1; pass <= 2; ++pass) {
    const auto x = at::ones({8}) * (f.rank + 1);
    (weight.mv(x) + bias).sum().backward();
  }
  CHECK(test::all_are(bias.grad(), 2));
  CHECK(test::all_are(weight.grad(), 2 * (f.mean_rank + 1)));
}

TEST_CASE("options of PowerSGD that cannot work are errors that name them") {
  const auto check = [](const PowerSGDOptions& options, bool has_feedback = false) {
    parallel::check(
        {.comm_hook = DDPCommunicationHookType::power_sgd, .power_sgd = options, .error_feedback = has_feedback});
  };
  CHECK_THROWS_WITH(check({.rank = 0}), ContainsSubstring("ddp.power_sgd.rank is 0"));
  CHECK_THROWS_WITH(check({.start_step = 1}), ContainsSubstring("ddp.power_sgd.start_step is 1"));
  CHECK_THROWS_WITH(check({.min_compression = 0.5}), ContainsSubstring("min_compression is 0.5"));
  CHECK_THROWS_WITH(check({}, true), ContainsSubstring("ddp.error_feedback is set with ddp.comm_hook = power_sgd"));
  CHECK_NOTHROW(check(at_once(1)));
}
