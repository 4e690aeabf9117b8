// Programs over streams, each complete. Every wait and every recorded stream is then left out, one at a time: the race
// detector finds each of these races, and nothing in the complete programs.
#include "planted_races.hpp"
#include "sim_fixture.hpp"

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
