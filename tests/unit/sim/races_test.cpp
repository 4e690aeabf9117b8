// Programs over streams, each complete. Every wait and every recorded stream is then left out, one at a time: the race
// detector finds each of these races, and nothing in the complete programs.
#include "planted_races.hpp"
#include "sim_fixture.hpp"
#include "support/sim/race_detector.hpp"

using namespace hortator;

namespace {

std::vector<std::string> run(const test::RaceProgram& program, int left_out) {
  test::Ordering ordering(left_out);
  program.run(ordering);
  auto findings = sim::take_findings();
  test::wait_for_all();
  return findings;
}

}  // namespace

TEST_CASE("every planted race is found, and none in the complete programs", "[sim]") {
  int planted = 0;
  int found = 0;
  for (const auto& program : test::race_programs()) {
    for (const auto policy : test::policies) {
      INFO(program.name);
      test::start_clean(policy);
      CHECK(run(program, test::Ordering::nothing).empty());
    }
    const auto needed = test::needed_orderings(program);
    for (int left_out = 0; left_out < needed; ++left_out) {
      INFO(program.name << ", without ordering " << left_out);
      test::start_clean(sim::Policy::late);
      const auto findings = run(program, left_out);
      ++planted;
      found += static_cast<int>(!findings.empty());
      REQUIRE_FALSE(findings.empty());
      CHECK_THAT(findings.front(), ContainsSubstring("is not ordered after"));
    }
  }
  CHECK(planted >= 50);
  CHECK(found == planted);
}

TEST_CASE("a finding names both operators, their streams and the kind of conflict", "[sim]") {
  sim::RaceDetector detector;
  sim::AccessHistory block;
  const auto use = [&](int stream, const char* name, std::size_t begin, std::size_t end, bool writes) {
    detector.submit(stream);
    detector.use(block, stream, name, begin, end, writes);
  };
  use(1, "fill", 0, 8, true);
  use(1, "sum", 0, 8, false);
  CHECK(detector.take_findings().empty());
  use(2, "mul", 4, 12, false);
  CHECK(detector.take_findings() ==
        std::vector<std::string>{"Read of a write: 'mul' on stream 2 is not ordered after 'fill' on stream 1"});
  use(2, "copy", 8, 12, true);  // other bytes than those that were written
  CHECK(detector.take_findings().empty());
  use(3, "zero", 10, 11, true);
  CHECK(detector.take_findings() ==
        std::vector<std::string>{"Two writes: 'zero' on stream 3 is not ordered after 'copy' on stream 2",
                                 "Write over a read: 'zero' on stream 3 is not ordered after 'mul' on stream 2"});
  detector.order_host_after(detector.clock_of(1));
  detector.order_host_after(detector.clock_of(2));
  detector.order_host_after(detector.clock_of(3));
  use(4, "late", 0, 10, true);
  CHECK(detector.take_findings().empty());
}
