#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/world.hpp"

namespace hortator::runtime {

/// The ranks of a node, as the banner shows them.
struct NodeLine {
  std::string host = {};
  machine::CpuSet ranks = {};
};

/// The content of the banner, as plain data.
struct BannerFacts {
  std::vector<std::string> libraries = {};  ///< "hortator 0.1.0", "LibTorch 2.15.0", "Open MPI v4.1.4", "HDF5 1.10.8"
  std::string launcher = {};
  int ranks = 1;
  int nodes = 1;
  int fewest_a_node = 1;
  int max_per_node = 1;
  std::vector<NodeLine> shown = {};  ///< all nodes, or the first few and the last
  std::string device = {};           ///< of the main rank: "cpu", "cuda (NVIDIA H100)"
  std::string cpus = {};             ///< of the main rank: "0-3"
  std::string place = {};            ///< of the main rank's device: World::device_place()
  int threads = 1;
  bool same_everywhere = true;  ///< device and threads are all ranks'
};

/// Additional libraries for the first line, and additional lines: name and value.
struct BannerExtras {
  std::vector<std::string> libraries = {};
  std::vector<std::pair<std::string, std::string>> lines = {};
};

std::string banner(const BannerFacts& facts, const BannerExtras& extras = {});

/// The facts, complete on the main rank only. The number of host names sent to it does not depend on the number of
/// nodes.
/// @collective
BannerFacts banner_facts(const World& world);

/// Logs the banner on the main rank. @collective
void announce(const World& world, const BannerExtras& extras = {});

}  // namespace hortator::runtime
