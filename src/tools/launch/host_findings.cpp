#include "tools/launch/host_findings.hpp"

#include <algorithm>
#include <optional>

#include "tools/watch/run_folder.hpp"

namespace hortator::tools {
namespace {

using launching::HostFinding;
using launching::HostSign;

std::optional<HostFinding> finding_of(const Diagnosis& diagnosis, const std::string& lost, bool drops_lost_hosts) {
  if (!lost.empty()) return HostFinding{.host = lost, .sign = HostSign::lost};
  if (diagnosis.rule == "node-lost" && drops_lost_hosts) return {};
  if (!diagnosis.suspect_host.empty()) return HostFinding{.host = diagnosis.suspect_host, .sign = HostSign::failed};
  if (diagnosis.rule == "stall" && !diagnosis.host.empty())
    return HostFinding{.host = diagnosis.host, .sign = HostSign::stalled};
  return {};
}

std::optional<HostSign> sign_of(const observe::HostReport& report) {
  if (report.sign == observe::slow_host) return HostSign::slow;
  if (report.sign == observe::damaged_host) return HostSign::damaged;
  return {};  // of a later release
}

}  // namespace

// The id of a run that has ended within a second is not known.
std::vector<observe::HostReport> reports_since(const std::filesystem::path& folder, double time) {
  if (folder.empty()) return {};
  auto reports = read_host_reports(folder);
  std::erase_if(reports, [&](const observe::HostReport& report) { return report.time < time; });
  return reports;
}

std::vector<HostFinding> findings_of(const Diagnosis& diagnosis, const std::string& lost,
                                     const std::vector<observe::HostReport>& reports, bool drops_lost_hosts) {
  std::vector<HostFinding> findings;
  if (auto finding = finding_of(diagnosis, lost, drops_lost_hosts)) findings.push_back(*std::move(finding));
  for (const auto& report : reports) {
    const auto sign = sign_of(report);
    if (!sign || report.host.empty()) continue;
    HostFinding finding{.host = report.host, .sign = *sign};
    if (std::ranges::find(findings, finding) == findings.end()) findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace hortator::tools
