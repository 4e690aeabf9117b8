#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/restarts/host_choice.hpp"
#include "observe/status/host_report.hpp"
#include "tools/why/diagnosis.hpp"

namespace hortator::tools {

/// What runs have reported of their hosts since that time, in seconds since 1970; none without a folder.
std::vector<observe::HostReport> reports_since(const std::filesystem::path& folder, double time);

/// What a failed attempt shows of hosts, each finding once: by its diagnosis, by the host that mpirun has lost (empty:
/// none), and by its reports. Where the scheduler takes lost hosts out itself, `drops_lost_hosts`, nothing is concluded
/// from the loss of a node whose name is unknown. Pure.
std::vector<launching::HostFinding> findings_of(const Diagnosis& diagnosis, const std::string& lost,
                                                const std::vector<observe::HostReport>& reports, bool drops_lost_hosts);

}  // namespace hortator::tools
