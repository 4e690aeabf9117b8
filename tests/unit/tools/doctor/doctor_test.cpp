#include "unit/tools/doctor/doctor_fixture.hpp"

using namespace hortator::test;

TEST_CASE("a healthy machine has no findings but ok") {
  expect_ok(good_machine());
  expect_ok(good_libraries());
  expect_ok(good_devices());
  expect_ok(good_fabric());
  expect_ok(FabricFacts{});
  expect_ok(DeviceFacts{});
  expect_ok(ClockFacts{.max_behind = 0.2, .max_ahead = 0.9});
  expect_ok(BindingFacts{.of_ranks = {{0, 1}, {2, 3}}, .machine_cpus = 4});
  expect_ok(FolderFacts{.path = "/scratch", .file_system = "lustre", .free_bytes = 9 * gib});
}

TEST_CASE("equal findings of several ranks are merged, and ok is dropped if a rank has a problem") {
  const Finding fine{"clocks", Severity::ok, "fine"};
  const Finding bad{"clocks", Severity::warning, "late", "NTP"};
  const Finding other{"kernel", Severity::ok, "6.1"};
  CHECK((merge({fine, fine, other}) == Findings{{"clocks", Severity::ok, "fine", "", 2}, other}));
  CHECK((merge({fine, other, bad, fine, bad}) == Findings{other, {"clocks", Severity::warning, "late", "NTP", 2}}));
  CHECK(merge({}).empty());
}

TEST_CASE("findings survive encoding and are printed as text and JSON") {
  const Findings findings = {{"fsync", Severity::error, "no \"fsync\"\n", "elsewhere", 3},
                             {"kernel", Severity::ok, "6.1"}};
  CHECK((decode(encode(findings)) == findings));
  CHECK(has_errors(findings));
  CHECK(!has_errors({{"kernel", Severity::warning, "x", "y"}}));
  const auto object = to_json(findings, 4);
  CHECK(object["ranks"] == 4);
  CHECK(object["errors"] == 1);
  CHECK(object["warnings"] == 0);
  CHECK(object["findings"][0]["remedy"] == "elsewhere");
  CHECK(object["findings"][1]["severity"] == "ok");
  const auto text = to_text(findings, 4);
  CHECK_THAT(text, ContainsSubstring("error    fsync") && ContainsSubstring("(3 of 4 ranks)") &&
                       ContainsSubstring("remedy: elsewhere") && ContainsSubstring("1 error, 0 warnings"));
}
