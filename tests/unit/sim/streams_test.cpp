// Work of the simulated accelerator runs when its policy says, and events and waits put it in order.
#include <thread>

#include "sim_fixture.hpp"

using namespace hortator;
using test::order;
using test::side_stream;

namespace {

at::Tensor eight(double value) { return at::full({8}, value, sim::device()); }

}  // namespace

TEST_CASE("work runs at once, only when the host waits, or at random", "[sim]") {
  auto event = [] {
    c10::Event made(c10::kPrivateUse1);
    made.record(test::current_stream());
    return made;
  };
  test::start_clean(sim::Policy::eager);
  const auto first = eight(2);
  CHECK(event().query());
  test::start_clean(sim::Policy::late);
  const auto second = eight(3);
  const auto late = event();
  CHECK_FALSE(late.query());
  CHECK(second.sum().item<float>() == 24);
  CHECK(late.query());
  bool ran = false;
  bool waited = false;
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    test::start_clean(sim::Policy::random, seed);
    const auto third = eight(3);
    (event().query() ? ran : waited) = true;
  }
  CHECK(ran);
  CHECK(waited);
}

TEST_CASE("a query that is repeated comes true: the device is late, not stuck", "[sim]") {
  test::start_clean(sim::Policy::late);
  const auto value = eight(1);
  c10::Event event(c10::kPrivateUse1);
  event.record(test::current_stream());
  int queries = 0;
  while (!event.query() && queries < 100) ++queries;
  CHECK(queries > 0);
  CHECK(queries < 10);
}

TEST_CASE("a stream that waits for another sees its results, one that does not reads NaN", "[sim]") {
  test::start_clean(sim::Policy::late);
  for (const bool waits : {true, false}) {
    const auto side = side_stream();
    const auto input = eight(3);
    order(test::current_stream(), side);
    at::Tensor doubled;
    {
      const c10::StreamGuard guard(side);
      doubled = input * 2;
    }
    if (waits) order(side, test::current_stream());
    const auto sum = (doubled + 1).sum().item<float>();
    CHECK((waits ? sum == 56 : std::isnan(sum)));
    CHECK(sim::take_findings().empty() == waits);
    order(side, test::current_stream());
  }
}

TEST_CASE("each thread has a current device and streams of its own, and contexts are counted", "[sim]") {
  test::start_clean(sim::Policy::eager);
  sim::forget_contexts();
  std::thread([] {
    const c10::DeviceGuard guard(sim::device(2));
    CHECK(at::ones({2}, at::TensorOptions(c10::kPrivateUse1)).device() == sim::device(2));
  }).join();
  CHECK(test::sim_guard().getDevice() == sim::device(0));
  CHECK(sim::contexts() == std::vector{2});
  // As with CUDA, an event that dies in a thread that has not chosen its device makes a context on the first one.
  std::thread([] {
    const auto stream = test::side_stream(2);
    auto event = std::make_unique<c10::Event>(c10::kPrivateUse1);
    {
      const c10::DeviceGuard guard(sim::device(2));
      event->record(stream);
    }
    CHECK(sim::contexts() == std::vector{2});
    event.reset();
  }).join();
  CHECK(sim::contexts() == std::vector{2, 0});
}

TEST_CASE("devices copy to each other in the order of both their streams", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    const auto here = eight(5);
    const auto there = here.to(sim::device(1));
    CHECK(there.device() == sim::device(1));
    CHECK(((there + 1).to(sim::device(0)) - here).sum().item<float>() == 8);
    CHECK(sim::take_findings().empty());
  }
  CHECK_THROWS_WITH(eight(1) + at::ones({8}, sim::device(1)), ContainsSubstring("same device"));
  CHECK_THROWS_WITH(eight(1) + at::ones({8}), ContainsSubstring("same device"));
}

TEST_CASE("an operator that fails on the device is reported at the next wait, as on CUDA", "[sim]") {
  test::start_clean(sim::Policy::late);
  const auto index = at::full({1}, 100, at::TensorOptions(sim::device()).dtype(at::kLong));
  at::Tensor taken;
  CHECK_NOTHROW(taken = eight(1).index_select(0, index));
  CHECK_THROWS_WITH(test::sim_guard().synchronizeDevice(0), ContainsSubstring("index_select failed"));
  CHECK(sim::take_findings().size() == 1);
  CHECK(eight(1).sum().item<float>() == 8);
}
