#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/command.hpp"

/// Restarts without hosts that were lost or that failed. Pure functions.
namespace hortator::launching {

/// A host on which a run has failed.
struct BadHost {
  std::string name = "";
  bool is_lost = false;  ///< it cannot be reached
  int failures = 1;      ///< attempts of this launch that it has ended

  friend bool operator==(const BadHost&, const BadHost&) = default;
};

/// The request without `host`: a spare one of its list of hosts takes its place. Without spares, a lost host, or one
/// that has failed twice, leaves fewer ranks, with as many on each host as before. Returns nothing if the request stays
/// as it is: it lists no hosts, or not this one, or no other.
std::optional<LaunchRequest> without_host(const LaunchRequest& request, const BadHost& host);

/// The host that an mpirun has lost, by its report; empty if the report is about anything else.
std::string lost_host(std::string_view report);

}  // namespace hortator::launching
