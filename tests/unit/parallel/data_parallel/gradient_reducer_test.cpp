#include "parallel/data_parallel/gradient_reducer.hpp"

#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstdint>
#include <hortator/error.hpp>

#include "comm/self/self_communicator.hpp"
#include "support/called_operators.hpp"
#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::all_are;
using test::parameter;
using test::ReducerFixture;

TEST_CASE("gradients become means over the ranks, whatever the bucket size, however backward is called") {
  for (const double megabytes : {test::one_byte_buckets, 4e-5, 25.0}) {
    for (const bool by_pass : {false, true}) {
      ReducerFixture f;
      f.options.bucket_cap_mb = megabytes;
      auto a = parameter({3});
      auto b = parameter({2, 5});
      auto c = parameter({4}, at::kDouble);
      auto d = parameter({2, 3, 4, 4});
      {
        const at::NoGradGuard no_grad;
        d.set_data(d.contiguous(at::MemoryFormat::ChannelsLast));
      }
      parallel::GradientReducer reducer({{"a", a}, {"b", b}, {"c", c}, {"d", d}}, f.parallel());
      for (int step = 1; step <= 4; ++step) {
        const double mine = f.rank + step;
        for (auto* p : {&a, &b, &c, &d}) p->mutable_grad().reset();
        const auto loss = a.sum() * mine + (b * mine).sum() + (c * mine).sum().to(at::kFloat) + (d * mine).sum();
        by_pass ? f.pass.run(loss) : loss.backward();
        if (by_pass) reducer.finish();
        for (const auto* p : {&a, &b, &c, &d}) CHECK(all_are(p->grad(), f.mean_rank + step));
      }
      if (!f.alone()) {
        CHECK(a.grad().suggest_memory_format() == at::MemoryFormat::Contiguous);
        CHECK(d.grad().strides() == d.strides());
        CHECK(reducer.buckets().size() == (megabytes == 25.0 ? 2 : megabytes == 4e-5 ? 3 : 4));
      }
    }
  }
}

TEST_CASE("passes that keep the gradients add up as DDP's: the average plus the new ones is averaged again") {
  ReducerFixture f;
  auto a = parameter({3});
  parallel::GradientReducer reducer({{"a", a}}, f.parallel());
  double expected = 0;
  for (int pass = 0; pass < 3; ++pass) {
    (a.sum() * (f.rank + 1)).backward();
    reducer.finish();
    expected += f.mean_rank + 1;
    CHECK(all_are(a.grad(), expected));
  }
}

TEST_CASE("paused, gradients add up on their rank; the next pass averages the sum, and nothing twice") {
  for (const bool set_to_none : {true, false}) {
    for (const bool starts_paused : {true, false}) {
      ReducerFixture f;
      f.options.bucket_cap_mb = test::one_byte_buckets;
      auto a = parameter({3});
      auto b = parameter({2});
      parallel::GradientReducer reducer({{"a", a}, {"b", b}}, f.parallel());
      const auto backward = [&](double scale) { ((a.sum() + b.sum() * 10) * scale * (f.rank + 1)).backward(); };
      double before = 0;  // sum of what has been averaged
      if (!starts_paused) {
        backward(1);
        before = 1;
      }
      for (int round = 0; round < 3; ++round) {
        reducer.pause();
        backward(2);
        backward(3);
        CHECK(all_are(a.grad(), before * (f.mean_rank + 1) + 5.0 * (f.rank + 1)));
        reducer.resume();
        backward(4);
        before += 9;
        CHECK(all_are(a.grad(), before * (f.mean_rank + 1)));
        CHECK(all_are(b.grad(), 10 * before * (f.mean_rank + 1)));
        backward(1);  // without zero_grad and without a pause
        before += 1;
        CHECK(all_are(a.grad(), before * (f.mean_rank + 1)));
        if (round == 1) {
          for (auto* p : {&a, &b}) set_to_none ? p->mutable_grad().reset() : void(p->mutable_grad().zero_());
          before = 0;
        }
      }
    }
  }
}

TEST_CASE("gradients in a bucket begin at cache lines, whatever the sizes, so that kernels load whole vectors") {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    ReducerFixture f;
    if (f.alone()) return;
    std::vector<at::Tensor> all;
    std::vector<parallel::NamedParameter> named;
    for (const std::int64_t size : {1, 3, 17, 64, 5}) {
      all.push_back(parameter({size}, type));
      named.push_back({std::to_string(size), all.back()});
    }
    parallel::GradientReducer reducer(named, f.parallel());
    for (int pass = 0; pass < 2; ++pass) {
      auto sum = at::zeros({}, type);
      for (const auto& one : all) sum = sum + one.sum() * (f.rank + 1);
      for (auto& one : all) one.mutable_grad().reset();
      sum.backward();
    }
    CHECK(reducer.buckets().size() == 1);
    for (const auto& one : all) {
      CHECK(reinterpret_cast<std::uintptr_t>(one.grad().const_data_ptr()) % 64 == 0);
      CHECK(all_are(one.grad(), f.mean_rank + 1));
    }
  }
}

TEST_CASE("gradients are converted for the way and back in one call for all") {
  ReducerFixture f;
  if (f.alone()) return;
  f.options.comm_hook = DDPCommunicationHookType::bf16;
  auto a = parameter({3});
  auto b = parameter({2});
  parallel::GradientReducer reducer({{"a", a}, {"b", b}}, f.parallel());
  (a.sum() + b.sum()).backward();
  const test::CalledOperators operators;
  (a.sum() + b.sum()).backward();
  CHECK(std::ranges::count(operators.names(), "aten::_foreach_copy_") == 2);
  CHECK(all_are(b.grad(), 2));
}

TEST_CASE("pauses nest") {
  ReducerFixture f;
  parallel::GradientReducer reducer({{"a", parameter({3})}}, f.parallel());
  reducer.pause();
  reducer.pause();
  reducer.resume();
  CHECK(reducer.is_paused());
  reducer.resume();
  CHECK_FALSE(reducer.is_paused());
}

TEST_CASE("zero_grad works on gradients in buckets, both ways") {
  ReducerFixture f;
  torch::nn::Linear model(3, 2);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  parallel::GradientReducer reducer({{"weight", model->weight}, {"bias", model->bias}}, f.parallel());
  const void* memory = nullptr;
  for (const bool set_to_none : {false, true, false, false}) {
    model->forward(at::full({1, 3}, f.rank + 1.0)).sum().backward();
    CHECK(all_are(model->weight.grad(), f.mean_rank + 1));
    CHECK((f.alone() || memory == nullptr || memory == model->weight.grad().const_data_ptr()));
    memory = model->weight.grad().const_data_ptr();
    optimizer.zero_grad(set_to_none);
    CHECK(model->weight.grad().defined() != set_to_none);
  }
}

TEST_CASE("from the second pass on, buckets start while backward runs, in the order of arrival") {
  ReducerFixture f;
  if (f.alone()) return;
  f.options.bucket_cap_mb = test::one_byte_buckets;
  auto first = parameter({3});
  auto second = parameter({3});
  auto third = parameter({3});
  parallel::GradientReducer reducer({{"first", first}, {"second", second}, {"third", third}}, f.parallel());
  for (auto [name, tensor] : {std::pair("first", first), {"second", second}, {"third", third}})
    tensor.register_hook([&log = f.log, name = std::string(name)](const at::Tensor&) { log.push_back(name); });
  const auto step = [&] {
    f.log.clear();
    ((first * 2).tanh() * second).tanh().mul(third).sum().backward();
    return f.log;
  };
  CHECK(step() == test::Log{"third", "second", "first", "all_reduce", "all_reduce", "all_reduce"});
  for (int i = 0; i < 2; ++i)
    CHECK(step() == test::Log{"third", "all_reduce", "second", "all_reduce", "first", "all_reduce"});
  CHECK(reducer.buckets() == std::vector<std::vector<std::string>>{{"third"}, {"second"}, {"first"}});
  second.requires_grad_(false);  // its bucket does not wait for it
  CHECK(step() == test::Log{"third", "all_reduce", "all_reduce", "first", "all_reduce"});
}

TEST_CASE("ranks on which gradients arrive in different orders agree on rank 0's buckets, once") {
  ReducerFixture f;
  f.options.bucket_cap_mb = test::one_byte_buckets;
  std::vector<at::Tensor> p;
  std::vector<parallel::NamedParameter> named;
  for (int i = 0; i < 5; ++i) {
    p.push_back(parameter({2 + i}));
    named.push_back({std::to_string(i), p.back()});
  }
  parallel::GradientReducer reducer(named, f.parallel());
  const auto step = [&](int shift) {
    auto x = at::ones({1});
    for (int i = 0; i < 5; ++i) x = x * (p[static_cast<std::size_t>((i + shift) % 5)] * (f.rank + 1)).mean();
    for (auto& one : p) one.mutable_grad().reset();
    x.backward();
    const double factor = std::pow(f.rank + 1, 5);
    double mean = 0;
    for (int r = 0; r < f.size; ++r) mean += std::pow(r + 1, 5) / f.size;
    CHECK(factor > 0);
    for (const auto& one : p) CHECK(all_are(one.grad(), mean / static_cast<double>(one.numel())));
  };
  step(f.rank + 1);
  // Rank 0 multiplied 1 2 3 4 0: backward reaches 0 first.
  const std::vector<std::vector<std::string>> expected{{"0"}, {"4"}, {"3"}, {"2"}, {"1"}};
  if (!f.alone()) CHECK(reducer.buckets() == expected);
  for (int i = 0; i < 3; ++i) step(f.rank * 2 + i);
  if (!f.alone()) CHECK(reducer.buckets() == expected);
}

TEST_CASE("a backward that does not reach the model sends nothing") {
  ReducerFixture f;
  auto a = parameter({3});
  auto other = parameter({3});
  parallel::GradientReducer reducer({{"a", a}}, f.parallel());
  // Only rank 0 calls finish(): if it communicated, it would wait forever.
  other.sum().backward();
  if (f.rank == 0) reducer.finish();
  CHECK_FALSE(a.grad().defined());
}

TEST_CASE("a parameter without gradient, on one rank or on all, is named on all ranks, and the next pass works") {
  ReducerFixture f;
  if (f.alone()) return;
  f.options.bucket_cap_mb = test::one_byte_buckets;
  auto used = parameter({3});
  auto sometimes = parameter({2});
  parallel::GradientReducer reducer({{"used", used}, {"sometimes", sometimes}}, f.parallel());
  for (int culprit = 0; culprit <= f.size; ++culprit) {
    const bool unused_here = culprit == f.rank || culprit == f.size;
    std::string text;
    int rank = -1;
    try {
      (unused_here ? used.sum() : used.sum() + sometimes.sum()).backward();
    } catch (const Error& error) {
      text = error.what();
      rank = error.rank().value_or(-1);
    }
    CHECK_THAT(text, ContainsSubstring("Backward gave no gradient to sometimes ("));
    CHECK(rank == (culprit == f.size ? 0 : culprit));

    used.mutable_grad().reset();
    sometimes.mutable_grad().reset();
    ((used.sum() + sometimes.sum()) * (f.rank + 1)).backward();
    CHECK(all_are(sometimes.grad(), f.mean_rank + 1));
  }
}

TEST_CASE("a parameter that got its gradient while paused need not get one in the pass that averages") {
  ReducerFixture f;
  auto a = parameter({3});
  auto b = parameter({2});
  parallel::GradientReducer reducer({{"a", a}, {"b", b}}, f.parallel());
  for (int round = 0; round < 2; ++round) {
    a.mutable_grad().reset();
    b.mutable_grad().reset();
    reducer.pause();
    (b.sum() * (f.rank + 1)).backward();
    reducer.resume();
    (a.sum() * (f.rank + 1)).backward();
    CHECK(all_are(a.grad(), f.mean_rank + 1));
    CHECK(all_are(b.grad(), f.mean_rank + 1));
  }
}

TEST_CASE("a parameter that is unfrozen later is an error that names it; one that is frozen later is skipped") {
  ReducerFixture f;
  if (f.alone()) return;
  f.options.bucket_cap_mb = test::one_byte_buckets;
  auto a = parameter({3});
  auto b = parameter({3});
  auto c = parameter({3}).requires_grad_(false);
  parallel::GradientReducer reducer({{"a", a}, {"b", b}, {"c", c}}, f.parallel());
  const auto step = [&] { ((a + b + c) * (f.rank + 1)).sum().backward(); };
  step();
  b.requires_grad_(false);
  const auto resting = b.grad().clone();
  for (int i = 0; i < 2; ++i) {
    a.mutable_grad().reset();
    step();
    CHECK(all_are(a.grad(), f.mean_rank + 1));
    CHECK(at::equal(b.grad(), resting));
  }
  b.mutable_grad().reset();
  step();
  CHECK_FALSE(b.grad().defined());
  b.requires_grad_(true);
  a.mutable_grad().reset();
  step();
  CHECK(all_are(b.grad(), f.mean_rank + 1));
  c.requires_grad_(true);
  CHECK_THROWS_WITH(step(), ContainsSubstring("'c' was frozen when it was prepared and gets gradients now"));
}

TEST_CASE("times are counted where they are spent") {
  ReducerFixture f;
  auto a = parameter({100000});
  parallel::GradientReducer reducer({{"a", a}}, f.parallel());
  for (int i = 0; i < 3; ++i) {
    a.mutable_grad().reset();
    a.sum().backward();
  }
  const auto times = reducer.times();
  CHECK((times.copying > 0) == !f.alone());
  CHECK((times.waiting > 0) == !f.alone());
  CHECK((times.starting > 0) == !f.alone());
  CHECK(times.copying + times.waiting + times.starting < 10);
}

TEST_CASE("one rank: gradients are left exactly as backward made them, and nothing is hooked") {
  ReducerFixture f;
  comm::SelfCommunicator self(at::kCPU);
  auto a = parameter({3});
  parallel::GradientReducer reducer({{"a", a}},
                                    {.communicator = self, .host = f.host, .options = f.options, .pass = f.pass});
  (a.sum() * 2).backward();
  reducer.finish();
  CHECK(at::equal(a.grad(), at::full({3}, 2.0)));
  CHECK(reducer.buckets().empty());
  CHECK(torch::autograd::impl::post_acc_grad_hooks(a) == nullptr);
}
