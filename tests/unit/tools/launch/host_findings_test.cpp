#include "tools/launch/host_findings.hpp"

#include <array>
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using observe::HostReport;
using tools::Diagnosis;
using tools::findings_of;

namespace {

/// "n1 lost, n2 slow"
std::string of(const Diagnosis& diagnosis, const std::string& lost = "", const std::vector<HostReport>& reports = {},
               bool drops_lost_hosts = false) {
  constexpr std::array<const char*, 5> names = {" lost", " failed", " damaged", " stalled", " slow"};
  std::string text;
  for (const auto& finding : findings_of(diagnosis, lost, reports, drops_lost_hosts))
    text += (text.empty() ? "" : ", ") + finding.host + names[static_cast<std::size_t>(finding.sign)];
  return text;
}

}  // namespace

TEST_CASE("a lost host counts before a suspect one, and a stalled rank speaks against its host") {
  const Diagnosis suspect{.rule = "device-hardware", .host = "n1", .suspect_host = "n1"};
  CHECK(of({}).empty());
  CHECK(of(suspect) == "n1 failed");
  CHECK(of(suspect, "n2") == "n2 lost");
  CHECK(of({.rule = "stall", .host = "n1"}) == "n1 stalled");
  for (const char* rule : {"stall-gone", "stall-apart", "stall-network", "killed", "crash", "error", "replicas-tied"})
    CHECK(of({.rule = rule, .host = "n1"}).empty());
}

TEST_CASE("where the scheduler knows which node was lost, a guess counts for nothing") {
  const Diagnosis lost{.rule = "node-lost", .host = "n1", .suspect_host = "n1"};
  CHECK(of(lost) == "n1 failed");
  CHECK(of(lost, "", {}, true).empty());
  CHECK(of(lost, "n3", {}, true) == "n3 lost");
  CHECK(of({.rule = "replicas", .host = "n1", .suspect_host = "n1"}, "", {}, true) == "n1 failed");
}

TEST_CASE("reports of one attempt count once for each host and sign, and unknown signs not at all") {
  const std::vector<HostReport> reports = {{.host = "n1", .sign = "slow"},    {.host = "n1", .sign = "slow"},
                                           {.host = "n1", .sign = "damaged"}, {.host = "n2", .sign = "damaged"},
                                           {.host = "n3", .sign = "haunted"}, {.host = "", .sign = "slow"}};
  CHECK(of({.rule = "crash", .host = "n1", .suspect_host = "n1"}, "", reports) ==
        "n1 failed, n1 slow, n1 damaged, n2 damaged");
}

TEST_CASE("reports are read back from the run's folder, those of this attempt only") {
  const test::OwnFolder folder("host_findings");
  const auto status = folder.path / "status";
  std::filesystem::create_directories(status);
  const HostReport report{
      .time = 100.5, .run_id = "b", .host = "n1", .sign = "slow", .text = "a \"text\"\nof two lines"};
  auto earlier = report;
  earlier.time = 99;
  const auto row = to_row(report);
  CHECK(row.find('\n') == row.size() - 1);
  CHECK((observe::parse_host_report(row) == report));
  std::ofstream(status / observe::host_reports_file) << to_row(earlier) << row << "{\"run_id\":\"b\",\"host\":3}\n"
                                                     << "{\"run";
  const auto found = tools::reports_since(folder.path, 100);
  REQUIRE(found.size() == 1);
  CHECK((found[0] == report));
  CHECK(tools::reports_since(folder.path, 101).empty());
  CHECK(tools::reports_since({}, 0).empty());
}
