// Recordings of the simulated accelerator: memory of their own, which is reused within them.
#include "machine/device/graph.hpp"
#include "machine/device/stream.hpp"
#include "sim_fixture.hpp"

using namespace hortator;

namespace {

at::Tensor number(double value) { return at::full({4}, value, sim::device()); }

}  // namespace

TEST_CASE("a recording replays on the present values of its inputs, with new random numbers", "[sim]") {
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    machine::Graph graph(sim::device());
    const auto input = number(1);
    at::Tensor output;
    at::Tensor noise;
    const auto work = [&] {
      output = (input * 3).sin() + number(1);
      noise = at::rand({4}, sim::device());
    };
    graph.rehearse(work);
    graph.record(work);
    at::Tensor last;
    for (const double value : {1.0, 2.0, -5.0}) {
      input.fill_(value);
      graph.replay();
      CHECK(at::allclose(output, (input * 3).sin() + 1));
      if (last.defined()) CHECK_FALSE(at::equal(last, noise));
      last = noise.clone();
    }
    CHECK(sim::take_findings().empty());
  }
}

TEST_CASE("work that is recorded does not run, and the host may not wait for it", "[sim]") {
  test::start_clean(sim::Policy::eager);
  const auto input = number(1);
  for (const auto& wait : std::vector<std::function<void()>>{[&] { static_cast<void>(input.sum().item<float>()); },
                                                             [&] { test::sim_guard().synchronizeDevice(0); },
                                                             [&] { static_cast<void>(input.cpu()); },
                                                             [&] {
                                                               c10::Event event(c10::kPrivateUse1);
                                                               event.record(test::current_stream());
                                                               static_cast<void>(event.query());
                                                             }}) {
    machine::Graph graph(sim::device());
    CHECK_THROWS_WITH(graph.record([&] {
      input.add_(1);
      wait();
    }),
                      ContainsSubstring("not permitted"));
  }
  CHECK(input.sum().item<float>() == 4);
}

TEST_CASE("a stream joins a recording by an event, and has to come back", "[sim]") {
  for (const bool returns : {true, false}) {
    test::start_clean(sim::Policy::late);
    machine::Graph graph(sim::device());
    const machine::Stream side(sim::device());
    const auto input = number(2);
    at::Tensor output;
    const auto work = [&] {
      side.follow_current();
      {
        const c10::StreamGuard guard(side.get());
        output = input * 2;
      }
      if (returns) side.mark().hold_current_stream();
    };
    if (!returns) {
      CHECK_THROWS_WITH(graph.record(work), ContainsSubstring("has not been awaited"));
      continue;
    }
    graph.record(work);
    input.fill_(5);
    graph.replay();
    CHECK(output.sum().item<float>() == 40);
  }
}

TEST_CASE("a recording reuses its memory: what the host fills before a replay may be overwritten by it", "[sim]") {
  test::start_clean(sim::Policy::late);
  machine::Graph graph(sim::device());
  const auto input = number(1);
  const auto outside = at::full({4}, 0.0, sim::device());
  at::Tensor inside;
  at::Tensor output;
  at::Tensor right;
  graph.record([&] {
    { const auto temporary = input * 3; }
    inside = at::empty({4}, sim::device());  // the temporary's memory
    output = input * inside;
    right = input * outside;
  });
  inside.fill_(7);
  outside.fill_(7);
  graph.replay();
  CHECK(right.sum().item<float>() == 28);
  CHECK(std::isnan(output.sum().item<float>()));
}

TEST_CASE("a replay that uses memory which was released since is named", "[sim]") {
  test::start_clean(sim::Policy::late);
  machine::Graph graph(sim::device());
  auto input = number(1);
  at::Tensor output;
  graph.record([&] { output = input * 3; });
  graph.replay();
  CHECK(sim::take_findings().empty());
  input.reset();
  graph.replay();
  const auto findings = sim::take_findings();
  REQUIRE(findings.size() == 1);
  CHECK_THAT(findings.front(), ContainsSubstring("Replayed 'aten::mul"));
}
