#include <ATen/ops/arange.h>

#include <cmath>
#include <hortator/error.hpp>
#include <limits>

#include "parallel/data_parallel/gradient_reducer.hpp"
#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::all_are;
using test::parameter;
using test::ReducerFixture;
using Hook = DDPCommunicationHookType;

namespace {

// The gradient of `a` after one backward in which this rank's own gradient is `mine`.
at::Tensor averaged(ReducerFixture& f, at::Tensor a, const at::Tensor& mine, int passes = 1) {
  parallel::GradientReducer reducer({{"a", a}}, f.parallel());
  for (int i = 0; i < passes; ++i) {
    a.mutable_grad().reset();
    (a * mine).sum().backward();
  }
  return a.grad();
}

}  // namespace

TEST_CASE("gradients keep their type whatever they travel in, and are as exact as that allows") {
  for (const auto& [hook, precision] : {std::pair(Hook::fp32, 1e-6), {Hook::bf16, 8e-3}, {Hook::fp16, 2e-3}}) {
    for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
      ReducerFixture f;
      f.options.comm_hook = hook;
      const auto mine = at::arange(1, 40).to(type) * (f.rank + 1) / 8;
      const auto gradient = averaged(f, parameter({39}, type), mine, 2);
      const auto expected = at::arange(1, 40).to(at::kDouble) * (f.mean_rank + 1) / 8;
      CHECK(gradient.scalar_type() == type);
      const bool is_16_bit = type == at::kBFloat16 || type == at::kHalf;
      CHECK(at::allclose(gradient.to(at::kDouble), expected, is_16_bit ? 1e-2 : precision));
    }
  }
}

TEST_CASE("gradients in another type live in memory of their own and may be zeroed both ways") {
  ReducerFixture f;
  f.options.comm_hook = Hook::bf16;
  auto a = parameter({5});
  parallel::GradientReducer reducer({{"a", a}}, f.parallel());
  double expected = 0;
  for (int i = 0; i < 4; ++i) {
    (a.sum() * (f.rank + 1)).backward();
    expected += f.mean_rank + 1;
    CHECK(at::allclose(a.grad(), at::full({5}, expected), 1e-2));
    if (i == 1) a.mutable_grad().zero_();
    if (i == 2) a.mutable_grad().reset();
    if (i == 1 || i == 2) expected = 0;
  }
}

TEST_CASE("fp16: the sum does not overflow where the average does not") {
  for (const auto type : {at::kFloat, at::kHalf}) {
    ReducerFixture f;
    f.options.comm_hook = type == at::kHalf ? Hook::no : Hook::fp16;
    const auto gradient = averaged(f, parameter({3}, type), at::full({3}, 60000, type), 2);
    CHECK(at::allclose(gradient.to(at::kFloat), at::full({3}, 60000.0), 1e-3));
  }
}

TEST_CASE("a value that is not finite on one rank is not finite on all, and does not affect the next pass") {
  for (const auto hook : {Hook::no, Hook::fp32, Hook::bf16, Hook::fp16}) {
    for (const bool feedback : {false, true}) {
      if (feedback && hook == Hook::no) continue;
      for (const double bad : {static_cast<double>(INFINITY), static_cast<double>(NAN), 1e30}) {
        if (bad == 1e30 && hook != Hook::fp16) continue;  // too large for fp16 only
        ReducerFixture f;
        f.options.comm_hook = hook;
        f.options.error_feedback = feedback;
        auto a = parameter({4});
        parallel::GradientReducer reducer({{"a", a}}, f.parallel());
        auto scale = at::ones({4});
        if (f.rank == f.size - 1) scale[2] = bad;
        (a * scale).sum().backward();
        if (!f.alone()) CHECK_FALSE(std::isfinite(a.grad()[2].item<double>()));
        CHECK(std::isfinite(a.grad()[1].item<double>()));
        a.mutable_grad().reset();
        a.sum().backward();
        CHECK(at::allclose(a.grad(), at::ones({4}), 1e-2));
      }
    }
  }
}

// The same gradient on all ranks, so that their average is not rounded once more (a third of it in fp16 is).
TEST_CASE("error feedback: rounding errors are added in later passes, so that the sum over passes is right") {
  for (const auto& [hook, spacing] : {std::pair(Hook::bf16, 1.0 / 128), {Hook::fp16, 1.0 / 1024}}) {
    const double exact = 1 + 0.4 * spacing;
    const auto drift = [&, hook = hook](bool feedback) {
      ReducerFixture f;
      f.options.comm_hook = hook;
      f.options.error_feedback = feedback;
      auto a = parameter({1});
      parallel::GradientReducer reducer({{"a", a}}, f.parallel());
      double sum = 0;
      for (int i = 0; i < 100; ++i) {
        a.mutable_grad().reset();
        (a * exact).sum().backward();
        sum += a.grad().item<double>();
      }
      return std::abs(sum / 100 - exact);
    };
    if (ReducerFixture().alone() || (ReducerFixture().size == 3 && hook == Hook::fp16)) continue;
    CHECK(drift(false) > 0.35 * spacing);
    CHECK(drift(true) < 0.02 * spacing);
  }
}

TEST_CASE("invalid options are refused by name") {
  CHECK_THROWS_WITH(parallel::check({.bucket_cap_mb = 0}),
                    ContainsSubstring("ddp.bucket_cap_mb: expected a number above 0, got '0'"));
  CHECK_THROWS_WITH(parallel::check({.bucket_cap_mb = NAN}), ContainsSubstring("ddp.bucket_cap_mb"));
  CHECK_THROWS_WITH(parallel::check({.error_feedback = true}), ContainsSubstring("without a ddp.comm_hook"));
  CHECK_THROWS_WITH(parallel::check({.check_replicas_every = -1}),
                    ContainsSubstring("check_replicas_every: expected a whole number from 0, got '-1'"));
  CHECK_NOTHROW(parallel::check({}));
  CHECK(parallel::bucket_limits({}).bytes == std::int64_t{25} << 20);
  CHECK(parallel::bucket_limits({}).first_bytes == std::int64_t{1} << 20);
  CHECK(parallel::bucket_limits({.bucket_cap_mb = 0.5}).first_bytes == std::int64_t{1} << 19);
}

TEST_CASE("complex gradients and a communication type are refused together") {
  ReducerFixture f;
  if (f.alone()) return;
  f.options.comm_hook = Hook::bf16;
  CHECK_THROWS_WITH(parallel::GradientReducer({{"a", parameter({2}, at::kComplexFloat)}}, f.parallel()),
                    ContainsSubstring("cannot travel in the type of ddp.comm_hook"));
}
