#include "launch/job/node_facts.hpp"

#include <algorithm>
#include <cctype>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

// "64" of "64+": in a group of unlike nodes, the least.
int leading_number(std::string_view digits) {
  const auto end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  long long number = 0;
  return text::parse_integer(digits.substr(0, end), number) && number < 1'000'000 ? static_cast<int>(number) : 0;
}

std::string without_brackets(std::string_view text) {
  std::string plain;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (depth == 0) plain += c;
    if (c == ')' && depth > 0) --depth;
  }
  return plain;
}

// "gpu:a100:4(S:0-1),nvme:1"
std::vector<Gpus> gpus_in(std::string_view gres) {
  std::vector<Gpus> gpus;
  for (const auto& entry : text::split(without_brackets(gres), ',')) {
    if (entry != "gpu" && !entry.starts_with("gpu:")) continue;
    if (const auto parsed = parse_gpus(entry == "gpu" ? "1" : entry.substr(4))) gpus.push_back(*parsed);
  }
  return gpus;
}

std::string type_of(const Gpus& gpus) { return gpus.types.substr(0, gpus.types.find_first_of(":,")); }

// The GPUs of this node among which those that are wanted can be.
int matching(const NodeFacts& node, const Gpus& wanted) {
  const bool is_mixed = wanted.types.find(',') != std::string::npos;
  int count = 0;
  for (const auto& gpus : node.gpus) {
    if (wanted.types.empty() || is_mixed || gpus.types.empty() || type_of(gpus) == type_of(wanted)) count += gpus.count;
  }
  return count;
}

}  // namespace

std::vector<NodeFacts> parse_sinfo(std::string_view output) {
  std::vector<NodeFacts> nodes;
  for (const auto& line : text::split(std::string(output), '\n')) {
    const auto bar = line.find('|');
    const int cpus = leading_number(line);
    if (bar != std::string::npos && cpus > 0) nodes.push_back({.cpus = cpus, .gpus = gpus_in(line.substr(bar + 1))});
  }
  return nodes;
}

std::vector<NodeFacts> parse_pbsnodes(std::string_view output) {
  std::vector<NodeFacts> nodes;
  for (const auto& line : text::split(std::string(output), '\n')) {
    if (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())) == 0) nodes.emplace_back();
    const auto equals = line.find(" = ");
    if (equals == std::string::npos || nodes.empty()) continue;
    const auto value = leading_number(std::string_view(line).substr(equals + 3));
    const auto name = line.substr(0, equals);
    if (name.ends_with("resources_available.ncpus")) nodes.back().cpus = value;
    if (name.ends_with("resources_available.ngpus") && value > 0) nodes.back().gpus = {{.count = value}};
  }
  std::erase_if(nodes, [](const NodeFacts& node) { return node.cpus == 0; });
  return nodes;
}

std::optional<int> cpus_of_any(const std::vector<NodeFacts>& nodes, const Gpus& wanted) {
  std::optional<int> least;
  for (const auto& node : nodes) {
    const int gpus = matching(node, wanted);
    if (gpus < wanted.count) continue;
    const int cpus = wanted.count > 0 ? std::max(1, node.cpus * wanted.count / gpus) : node.cpus;
    least = std::min(least.value_or(cpus), cpus);
  }
  return least;
}

}  // namespace hortator::launching
