// HORTATOR_DEBUG_STREAMS as a device has it, on the simulated one: what it finds comes from LibTorch's operators,
// streams and events alone.
#include "machine/races/stream_watch.hpp"

#include <hortator/error.hpp>
#include <thread>

#include "machine/device/stream.hpp"
#include "planted_races.hpp"
#include "sim_fixture.hpp"

using namespace hortator;

namespace {

/// What is reported while `work` runs.
std::vector<std::string> findings_of(const std::function<void()>& work) {
  test::start_clean(sim::Policy::late);
  std::vector<std::string> findings;
  {
    const machine::StreamWatch watch(c10::kPrivateUse1,
                                     [&](const std::string& finding) { findings.push_back(finding); });
    work();
  }
  test::wait_for_all();
  sim::take_findings();
  return findings;
}

std::vector<std::string> findings_without(const test::RaceProgram& program, int left_out) {
  return findings_of([&] {
    test::Ordering ordering(left_out);
    program.run(ordering);
  });
}

}  // namespace

TEST_CASE("a watch finds every planted race, and none in the complete programs", "[sim]") {
  int planted = 0;
  for (const auto& program : test::race_programs()) {
    INFO(program.name);
    const auto complete = findings_without(program, test::Ordering::nothing);
    INFO((complete.empty() ? std::string() : complete.front()));
    CHECK(complete.empty());
    const auto needed = test::needed_orderings(program);
    for (int left_out = 0; left_out < needed; ++left_out, ++planted) {
      INFO("without ordering " << left_out);
      CHECK_FALSE(findings_without(program, left_out).empty());
    }
  }
  CHECK(planted >= 50);
}

TEST_CASE("a report names both operators, their streams and where the program called them, and comes once", "[sim]") {
  const auto findings = findings_of([] {
    const auto value = at::full({100}, 1, sim::device());
    const auto side = test::side_stream();
    for (int i = 0; i < 3; ++i) {
      const c10::StreamGuard guard(side);
      value.mul_(2);
    }
  });
  // The device has no kernel that multiplies in place: the product is a read and a write.
  REQUIRE(findings.size() == 2);
  CHECK_THAT(findings.front(), StartsWith("Read of a write: 'aten::mul' on stream ") &&
                                   ContainsSubstring(" of sim:0, called at test_sim+0x") &&
                                   ContainsSubstring(", is not ordered after 'aten::fill_' on stream 0 of sim:0"));
  CHECK_THAT(findings.back(), StartsWith("Two writes: 'aten::mul' on stream "));
}

TEST_CASE("work of other libraries is announced", "[sim]") {
  for (const bool waits : {true, false}) {
    const auto findings = findings_of([&] {
      const auto value = at::full({100}, 1, sim::device());
      const machine::Stream stream(sim::device());
      if (waits) stream.follow_current();
      machine::note_use(value, stream.get(), "all_reduce", true);
      stream.mark().hold_current_stream();
      value.add_(1);
    });
    CHECK(findings.empty() == waits);
    if (!waits) CHECK_THAT(findings.front(), ContainsSubstring("'all_reduce'"));
  }
}

TEST_CASE("reading a number makes the host wait, and with it all later work", "[sim]") {
  CHECK(findings_of([] {
          const auto value = at::full({100}, 1, sim::device());
          static_cast<void>(value.sum().item<float>());
          const c10::StreamGuard guard(test::side_stream());
          value.add_(1);
        }).empty());
}

TEST_CASE("an index with numbers is not a wait of the host, one with a mask is", "[sim]") {
  for (const bool is_mask : {false, true}) {
    const auto findings = findings_of([&] {
      const auto value = at::full({100}, 1, sim::device());
      const auto index = is_mask ? value.gt(0) : at::zeros({3}, at::TensorOptions(sim::device()).dtype(at::kLong));
      static_cast<void>(at::index(at::ones({100}, sim::device()), {index}));
      const c10::StreamGuard guard(test::side_stream());
      value.add_(1);
    });
    CHECK(findings.empty() == is_mask);
  }
}

TEST_CASE("memory that is recorded on a stream before any operator was seen may be reused", "[sim]") {
  for (const bool is_recorded : {true, false}) {
    auto value = at::full({3000}, 1, sim::device());  // before the watch
    const auto findings = findings_of([&] {
      sim::set_policy(sim::Policy::eager);
      const auto side = test::side_stream();
      if (is_recorded) value.record_stream(side);
      value.add_(1);
      test::order(test::current_stream(), side);
      at::Tensor sum;
      {
        const c10::StreamGuard guard(side);
        sum = value.sum();
      }
      value.reset();
      static_cast<void>(at::full({3000}, -1, sim::device()));  // where the value was
    });
    CHECK(findings.empty() == is_recorded);
  }
}

TEST_CASE("a report may wait for another thread that works on the device", "[sim]") {
  test::start_clean(sim::Policy::late);
  int reports = 0;
  {
    const machine::StreamWatch watch(c10::kPrivateUse1, [&](const std::string&) {
      ++reports;
      std::thread([] { static_cast<void>(at::ones({10}, sim::device()) + 1); }).join();
    });
    const auto value = at::full({100}, 1, sim::device());
    const c10::StreamGuard guard(test::side_stream());
    value.zero_();
  }
  CHECK(reports == 1);
  test::wait_for_all();
  sim::take_findings();
}

TEST_CASE("backward of work on several streams is in order: LibTorch orders it", "[sim]") {
  CHECK(findings_of([] {
          auto weight = at::full({100}, 1.0, sim::device()).requires_grad_();
          const auto side = test::side_stream();
          at::Tensor product;
          test::order(test::current_stream(), side);
          {
            const c10::StreamGuard guard(side);
            product = weight * 2;
          }
          test::order(side, test::current_stream());
          (product + weight * 3).sum().backward();
          static_cast<void>(weight.grad() + 1);
        }).empty());
}

TEST_CASE("only one watch can exist, and a new one starts from scratch", "[sim]") {
  const machine::StreamWatch watch(c10::kPrivateUse1, {});
  CHECK_THROWS_AS(machine::StreamWatch(c10::kPrivateUse1, {}), UsageError);
  CHECK_THROWS_WITH(machine::StreamWatch(c10::kXLA, {}), ContainsSubstring("Streams cannot be watched"));
}
