#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/command.hpp"
#include "launch/restarts/host_choice.hpp"

/// Restarts without hosts that were lost or that failed. Pure functions.
namespace hortator::launching {

/// The hosts of a launch. `at_hand` are those of its host file or of its allocation, with slots where they are known; a
/// list in the request counts more.
HostSupply supply_of(const LaunchRequest& request, const std::vector<std::string>& at_hand);

/// The request without a host of `supply`: a spare one takes its place, or there are fewer ranks, with as many on each
/// host as before. srun leaves it out by name; other launchers get a list of the hosts that are left. The last host
/// stays.
LaunchRequest without_host(const LaunchRequest& request, const HostSupply& supply, std::string_view host, bool by_srun);

/// The host that an mpirun has lost, by its report; empty if the report is about anything else.
std::string lost_host(std::string_view report);

}  // namespace hortator::launching
