#include <hortator/error.hpp>

#include "parallel/data_parallel/gradient_reducer.hpp"
#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::all_are;
using test::parameter;
using test::ReducerFixture;

namespace {

struct Unused {
  explicit Unused(DDPCommunicationHookType hook) {
    f.options = {.bucket_cap_mb = test::one_byte_buckets, .find_unused_parameters = true, .comm_hook = hook};
    reducer.emplace(std::vector<parallel::NamedParameter>{{"always", always}, {"sometimes", sometimes}}, f.parallel());
  }
  void step(bool with_sometimes) {
    auto loss = always.sum() * (f.rank + 1);
    if (with_sometimes) loss = loss + sometimes.sum() * (f.rank + 1);
    loss.backward();
  }
  double sum_of_users(bool even_only) const {
    double sum = 0;
    for (int rank = 0; rank < f.size; ++rank) sum += !even_only || rank % 2 == 0 ? rank + 1 : 0;
    return sum;
  }

  ReducerFixture f;
  at::Tensor always = parameter({3});
  at::Tensor sometimes = parameter({7});
  std::optional<parallel::GradientReducer> reducer;
};

constexpr auto hooks = {DDPCommunicationHookType::no, DDPCommunicationHookType::bf16, DDPCommunicationHookType::fp16};

}  // namespace

TEST_CASE("unused on all ranks: the gradient does not change, bit for bit, even if there is none") {
  for (const auto hook : hooks) {
    Unused u(hook);
    for (int i = 0; i < 2; ++i) {
      u.always.mutable_grad().reset();
      u.step(false);
      CHECK(at::allclose(u.always.grad(), at::full({3}, u.f.mean_rank + 1)));
      CHECK_FALSE(u.sometimes.grad().defined());
    }
    u.step(true);
    u.sometimes.mutable_grad().fill_(0.1 + u.f.rank);  // differs from an average over all ranks
    const auto before = u.sometimes.grad().clone();
    for (int i = 0; i < 2; ++i) {
      u.step(false);
      CHECK(at::equal(u.sometimes.grad(), before));
    }
    u.sometimes.mutable_grad().reset();
    u.step(false);
    CHECK_FALSE(u.sometimes.grad().defined());
  }
}

TEST_CASE("unused on some ranks: it counts as zero there") {
  for (const auto hook : hooks) {
    Unused u(hook);
    for (int i = 0; i < 3; ++i) {
      for (auto* p : {&u.always, &u.sometimes}) p->mutable_grad().reset();
      u.step(u.f.rank % 2 == 0);
      CHECK(at::allclose(u.sometimes.grad(), at::full({7}, u.sum_of_users(true) / u.f.size), 1e-2));
      CHECK(at::allclose(u.always.grad(), at::full({3}, u.f.mean_rank + 1), 1e-2));
    }
    // Added to the present gradient: the average of all ranks, then that of the even ranks.
    for (auto* p : {&u.always, &u.sometimes}) p->mutable_grad().reset();
    u.step(true);
    u.step(u.f.rank % 2 == 0);
    CHECK(at::allclose(u.sometimes.grad(), at::full({7}, (u.sum_of_users(false) + u.sum_of_users(true)) / u.f.size),
                       1e-2));
  }
}

TEST_CASE("a parameter that was used while paused counts as used, unless zero_grad has removed its gradient") {
  Unused u(DDPCommunicationHookType::no);
  if (u.f.alone()) return;
  u.reducer->pause();
  u.step(u.f.rank == 0);
  u.reducer->resume();
  u.step(false);
  CHECK(all_are(u.sometimes.grad(), 1.0 / u.f.size));
  u.reducer->pause();
  u.step(u.f.rank == 0);
  u.reducer->resume();
  for (auto* p : {&u.always, &u.sometimes}) p->mutable_grad().reset();
  u.step(false);
  CHECK_FALSE(u.sometimes.grad().defined());
}
