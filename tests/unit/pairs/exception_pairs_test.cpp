// Passes of two models that end with an exception on all ranks.
#include <stdexcept>

#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::Shardable;

namespace {

enum class Fault { none, in_forward, in_backward, in_plain_backward, before_step };

struct PairCase {
  int stage = 0;
  double bucket_mb = 3e-3;
  int bad_step = 1;
};

/// Two models in one pass; one step is left out, or throws in the middle of it on all ranks.
std::vector<at::Tensor> course_with(Fault fault, const PairCase& one) {
  Accelerator accelerator({.ddp = {.bucket_cap_mb = one.bucket_mb}, .zero = {.stage = one.stage}});
  std::vector<Shardable> nets = {Shardable(), Shardable()};
  auto adamw = test::make_adamw(nets[0]);
  auto other = test::make_adamw(nets[1]);
  auto first = accelerator.prepare(nets[0]);
  auto second = accelerator.prepare(nets[1]);
  auto optimizer = accelerator.prepare(*adamw);
  auto of_second = accelerator.prepare(*other);
  const auto step = [&](int i, Fault here) {
    auto made = first(batch(accelerator, i));
    if (here == Fault::in_forward) throw std::runtime_error("a fault");
    // The gradients of the second model are on their way when backward throws before it reaches the first one.
    if (here == Fault::in_backward || here == Fault::in_plain_backward)
      made.register_hook([](const at::Tensor& /*gradient*/) -> at::Tensor { throw std::runtime_error("a fault"); });
    const auto both = at::cat({made, made.narrow(1, 0, 2)}, 1);
    const auto loss = second(both).square().mean();
    here == Fault::in_plain_backward ? loss.backward() : accelerator.backward(loss);
    if (here == Fault::before_step) throw std::runtime_error("a fault");
    optimizer.step();
    of_second.step();
  };
  for (int i = 0; i < 3; ++i) {
    if (i == one.bad_step && fault == Fault::none) continue;
    try {
      step(i, i == one.bad_step ? fault : Fault::none);
      CHECK(i != one.bad_step);
    } catch (const std::runtime_error& error) {
      CHECK_THAT(error.what(), ContainsSubstring("a fault"));
    }
    optimizer.zero_grad();
    of_second.zero_grad();
  }
  accelerator.wait_for_everyone();
  auto weights = copies_of(*nets[0]);
  for (auto& one : copies_of(*nets[1])) weights.push_back(one);
  accelerator.wait_for_everyone();
  return weights;
}

}  // namespace

TEST_CASE("two models train on after all ranks have caught an exception in the middle of their common pass") {
  const std::vector<PairCase> cases = {{},           {.bad_step = 0}, {.bucket_mb = 25},
                                       {.stage = 2}, {.stage = 3},    {.stage = 3, .bad_step = 0}};
  for (const auto& one : cases) {
    const auto expected = course_with(Fault::none, one);
    for (const auto fault : {Fault::in_forward, Fault::in_backward, Fault::in_plain_backward, Fault::before_step}) {
      INFO("stage " << one.stage << ", buckets of " << one.bucket_mb << " MiB, fault " << static_cast<int>(fault)
                    << " in step " << one.bad_step);
      CHECK(are_equal(course_with(fault, one), expected));
    }
  }
}
