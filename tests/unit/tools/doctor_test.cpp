#include "doctor_fixture.hpp"

using namespace hortator::test;

TEST_CASE("a good machine has nothing but good news") {
  is_well(good_machine());
  is_well(good_libraries());
  is_well(good_devices());
  is_well(good_fabric());
  is_well(Fabric{});
  is_well(Devices{});
  is_well(Clocks{.max_behind = 0.2, .max_ahead = 0.9});
  is_well(Binding{.of_ranks = {{0, 1}, {2, 3}}, .machine_cpus = 4});
  is_well(Folder{.path = "/scratch", .file_system = "lustre", .free_bytes = 9 * gib});
}

TEST_CASE("what several ranks find is said once, and what is well only where all are") {
  const Finding well{"clocks", Severity::ok, "fine"};
  const Finding bad{"clocks", Severity::warning, "late", "NTP"};
  const Finding other{"kernel", Severity::ok, "6.1"};
  CHECK((merge({well, well, other}) == Findings{{"clocks", Severity::ok, "fine", "", 2}, other}));
  CHECK((merge({well, other, bad, well, bad}) == Findings{other, {"clocks", Severity::warning, "late", "NTP", 2}}));
  CHECK(merge({}).empty());
}

TEST_CASE("findings come through the way between ranks, and out for people and for programs") {
  const Findings findings = {{"fsync", Severity::error, "no \"fsync\"\n", "elsewhere", 3},
                             {"kernel", Severity::ok, "6.1"}};
  CHECK((decode(encode(findings)) == findings));
  CHECK(has_errors(findings));
  CHECK(!has_errors({{"kernel", Severity::warning, "x", "y"}}));
  const auto object = for_programs(findings, 4);
  CHECK(object["ranks"] == 4);
  CHECK(object["errors"] == 1);
  CHECK(object["warnings"] == 0);
  CHECK(object["findings"][0]["remedy"] == "elsewhere");
  CHECK(object["findings"][1]["severity"] == "ok");
  const auto text = for_people(findings, 4);
  CHECK_THAT(text, ContainsSubstring("error    fsync") && ContainsSubstring("(3 of 4 ranks)") &&
                       ContainsSubstring("remedy: elsewhere") && ContainsSubstring("1 error, 0 warnings"));
}
