#pragma once

#include <cstdint>
#include <string>

namespace hortator::planning {

/// A path between ranks.
struct Link {
  double bytes_per_second = 0;
  double latency = 0;  ///< seconds of a message

  friend bool operator==(const Link&, const Link&) = default;
};

/// The machine that a plan is for. Rates are those of one rank, while all ranks of its node work.
struct Machine {
  std::string name = "";
  int ranks_per_node = 1;
  std::uint64_t memory = 0;  ///< bytes of a rank
  double flops_fp32 = 0;     ///< operations per second
  double flops_16bit = 0;
  Link within_node = {};
  Link between_nodes = {};
  double disk_bytes_per_second = 0;

  friend bool operator==(const Machine&, const Machine&) = default;
};
std::string to_json(const Machine& machine);
/// Throws UsageError, which names `source` and the entry, where an entry is missing, unknown or impossible.
Machine parse_machine(const std::string& json, const std::string& source);

/// The seconds in which a rank sends `bytes` in `messages` messages.
double seconds(const Link& link, double bytes, double messages);

}  // namespace hortator::planning
