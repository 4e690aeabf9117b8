#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "launch/settings/resources.hpp"

/// What schedulers report about their nodes.
namespace hortator::launching {

/// One kind of node.
struct NodeFacts {
  int cpus = 0;
  std::vector<Gpus> gpus = {};  ///< by type
};

/// Parses the output of `sinfo -h -e -o "%c|%G"`.
std::vector<NodeFacts> parse_sinfo(std::string_view output);

/// Parses the output of `pbsnodes -a`.
std::vector<NodeFacts> parse_pbsnodes(std::string_view output);

/// The CPUs of a node that a job may ask for, whichever of these nodes it gets. A job that asks for some of a node's
/// GPUs gets the same share of its CPUs. Nothing if no node has that many GPUs.
std::optional<int> cpus_of_any(const std::vector<NodeFacts>& nodes, const Gpus& wanted);

}  // namespace hortator::launching
