#include "planning/machine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "core/text/json.hpp"
#include "core/text/text.hpp"

namespace hortator::planning {
namespace {

using Json = nlohmann::ordered_json;

Json json_of_link(const Link& link) { return {{"bytes_per_second", link.bytes_per_second}, {"latency", link.latency}}; }

[[noreturn]] void refuse(const std::string& source, const std::string& entry, const std::string& why) {
  throw UsageError({.what = text::concat(source, ": ", entry, ' ', why),
                    .why = "a plan costs runs on the machine that this file describes",
                    .hint = "write the file with hortator bench machine, and change numbers only"});
}

double positive(const Json& json, const char* name, const std::string& source, const std::string& within = "") {
  const auto entry = text::quote(within + name);
  if (!json.contains(name)) refuse(source, entry, "is missing");
  if (!json[name].is_number() || !(json[name].get<double>() > 0)) refuse(source, entry, "is not a number above 0");
  return json[name].get<double>();
}

/// A whole number from 1 to `max`.
std::int64_t whole(const Json& json, const char* name, std::int64_t max, const std::string& source) {
  const double number = positive(json, name, source);
  if (number != std::floor(number) || number > static_cast<double>(max))
    refuse(source, text::quote(name), text::concat("is not a whole number up to ", max));
  return static_cast<std::int64_t>(number);
}

Link link_in(const Json& json, const char* name, const std::string& source) {
  if (!json.contains(name) || !json[name].is_object()) refuse(source, text::quote(name), "is missing, or no object");
  const auto within = text::concat(name, '.');
  return {.bytes_per_second = positive(json[name], "bytes_per_second", source, within),
          .latency = positive(json[name], "latency", source, within)};
}

}  // namespace

std::string to_json(const Machine& machine) {
  const Json json = {{"name", machine.name},
                     {"ranks_per_node", machine.ranks_per_node},
                     {"memory", machine.memory},
                     {"flops_fp32", machine.flops_fp32},
                     {"flops_16bit", machine.flops_16bit},
                     {"within_node", json_of_link(machine.within_node)},
                     {"between_nodes", json_of_link(machine.between_nodes)},
                     {"disk_bytes_per_second", machine.disk_bytes_per_second}};
  return json.dump(2) + "\n";
}

Machine parse_machine(const std::string& text, const std::string& source) {
  const auto json = core::parse_record<Json>(text);
  if (!json.is_object()) refuse(source, "the file", "is not a JSON object");
  constexpr std::int64_t max_ranks = 1'000'000;
  constexpr std::int64_t max_memory = std::int64_t{1} << 50;  // bytes
  constexpr std::array known = {"name",        "ranks_per_node", "memory",        "flops_fp32",
                                "flops_16bit", "within_node",    "between_nodes", "disk_bytes_per_second"};
  for (const auto& [name, value] : json.items()) {
    if (std::ranges::find(known, name) == known.end()) refuse(source, text::quote(name), "is not a known entry");
  }
  return {.name = json.contains("name") && json["name"].is_string() ? json["name"].get<std::string>() : "",
          .ranks_per_node = static_cast<int>(whole(json, "ranks_per_node", max_ranks, source)),
          .memory = static_cast<std::uint64_t>(whole(json, "memory", max_memory, source)),
          .flops_fp32 = positive(json, "flops_fp32", source),
          .flops_16bit = positive(json, "flops_16bit", source),
          .within_node = link_in(json, "within_node", source),
          .between_nodes = link_in(json, "between_nodes", source),
          .disk_bytes_per_second = positive(json, "disk_bytes_per_second", source)};
}

double seconds(const Link& link, double bytes, double messages) {
  return bytes / link.bytes_per_second + messages * link.latency;
}

}  // namespace hortator::planning
