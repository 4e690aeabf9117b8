#include "runtime/banner.hpp"

#include <ATen/Parallel.h>

#include <hortator/version.hpp>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "runtime/build_identity.hpp"
#include "runtime/identity/launcher.hpp"

namespace hortator::runtime {
namespace {

constexpr int first_nodes_shown = 6;
constexpr std::size_t longest_ranges = 32;

std::string shorten(const machine::CpuSet& ranks) {
  auto ranges = machine::to_ranges(ranks);
  if (ranges.size() <= longest_ranges) return ranges;
  const auto end = ranges.rfind(',', longest_ranges);
  return text::concat(ranges.substr(0, end), ",... (", ranks.size(), ')');
}

std::string node_map(const BannerFacts& facts) {
  std::vector<std::string> parts;
  for (const auto& node : facts.shown) parts.push_back(text::concat(node.host, ": ", shorten(node.ranks)));
  if (static_cast<int>(parts.size()) < facts.nodes) parts.insert(parts.end() - 1, "...");
  return text::join(parts, "; ");
}

std::string size_of(const BannerFacts& facts) {
  auto all = text::concat(text::count(facts.ranks, "rank"), " on ", text::count(facts.nodes, "node"));
  if (facts.nodes == 1) return all;
  if (facts.fewest_a_node == facts.max_per_node) return text::concat(all, ", ", facts.max_per_node, " each");
  return text::concat(all, ", ", facts.fewest_a_node, " to ", facts.max_per_node, " each");
}

std::string device_name(c10::Device device) {
  const auto* const kind = machine::kind_of(device);
  return kind != nullptr ? text::concat(kind->name, " (", machine::identify(device).name, ')') : "cpu";
}

// Only the nodes that the banner shows send their line.
std::vector<NodeLine> gather_lines(const World& world) {
  const auto& place = world.topology();
  machine::CpuSet ranks;
  for (const int rank : mpi::all_gather<int>(world.node(), place.rank)) ranks.push_back(rank);
  const bool shown = place.is_leader() && (place.node < first_nodes_shown || place.node == place.nodes - 1);
  std::vector<NodeLine> lines;
  for (const auto& line :
       mpi::gather(world.comm(), shown ? world.host() + " " + machine::to_ranges(ranks) : std::string())) {
    const auto space = line.find(' ');
    if (space != std::string::npos)
      lines.push_back({line.substr(0, space), machine::from_ranges(line.substr(space + 1))});
  }
  return lines;
}

bool is_same_everywhere(const mpi::Communicator& comm, const std::string& text) {
  const auto mine = core::hash(text);
  return mpi::all_reduce(comm, mine, mpi::Op::min) == mpi::all_reduce(comm, mine, mpi::Op::max);
}

}  // namespace

std::string banner(const BannerFacts& facts, const BannerExtras& extras) {
  auto libraries = facts.libraries;
  libraries.insert(libraries.end(), extras.libraries.begin(), extras.libraries.end());
  const std::string_view whose = facts.same_everywhere ? "" : " on rank 0, others differ";
  std::vector<std::pair<std::string, std::string>> lines = {
      {"ranks", text::concat(size_of(facts), " (", facts.launcher, ")")},
      {"map", node_map(facts)},
      {"device", text::concat(facts.device, ", ", text::count(facts.threads, "thread"), " a rank", whose)},
      {"CPUs", text::concat(facts.cpus, facts.ranks > 1 ? " (rank 0)" : "")},
  };
  if (!facts.place.empty()) lines.emplace_back("GPU at", text::concat(facts.place, facts.ranks > 1 ? " (rank 0)" : ""));
  lines.insert(lines.end(), extras.lines.begin(), extras.lines.end());

  std::size_t width = 0;
  for (const auto& [name, value] : lines) width = std::max(width, name.size());
  auto text = text::join(libraries);
  for (const auto& [name, value] : lines) text += "\n  " + name + std::string(width - name.size() + 2, ' ') + value;
  return text;
}

BannerFacts banner_facts(const World& world) {
  const auto& place = world.topology();
  const auto device = device_name(world.device());
  const int threads = at::get_num_threads();
  return {.libraries = {std::string("hortator ") + HORTATOR_VERSION, "LibTorch " + libtorch_version(),
                        mpi::library_version()},
          .launcher = std::string(to_string(launcher().kind)),
          .ranks = place.size,
          .nodes = place.nodes,
          .fewest_a_node = mpi::all_reduce(world.comm(), place.local_size, mpi::Op::min),
          .max_per_node = mpi::all_reduce(world.comm(), place.local_size, mpi::Op::max),
          .shown = gather_lines(world),
          .device = device,
          .cpus = machine::to_ranges(world.cpus()),
          .place = world.device_place(),
          .threads = threads,
          .same_everywhere = is_same_everywhere(world.comm(), text::concat(device, threads))};
}

void announce(const World& world, const BannerExtras& extras) {
  const auto facts = banner_facts(world);
  if (world.topology().rank != 0) return;
  for (const auto& line : text::split(banner(facts, extras), '\n')) log::info(line);
}

}  // namespace hortator::runtime
