#include "launch/restarts/spare_hosts.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/text/text.hpp"
#include "launch/restarts/host_name.hpp"

namespace hortator::launching {
namespace {

std::string_view host_before_slots(std::string_view host) { return host.substr(0, host.find(':')); }

// How many hosts the ranks need.
int needed_hosts(const LaunchRequest& request, int hosts) {
  if (request.ranks_per_node) return (request.ranks + *request.ranks_per_node - 1) / *request.ranks_per_node;
  return std::min(request.nodes.value_or(hosts), hosts);
}

}  // namespace

std::optional<LaunchRequest> without_host(const LaunchRequest& request, const BadHost& host) {
  auto hosts = text::split(request.hosts, ',');
  const int needed = needed_hosts(request, static_cast<int>(hosts.size()));
  const auto removed = std::erase_if(hosts, [&](const std::string& one) {
    return without_domain(host_before_slots(one)) == without_domain(host.name);
  });
  if (removed == 0 || hosts.empty()) return {};
  const int left = static_cast<int>(hosts.size());
  const bool has_spare = left >= needed;
  if (!has_spare && !host.is_lost && host.failures < 2) return {};
  auto result = request;
  result.hosts = text::join(hosts, ",");
  if (has_spare) return result;
  const int per_host = request.ranks_per_node.value_or((request.ranks + needed - 1) / needed);
  result.ranks = left * per_host;
  if (request.nodes) result.nodes = left;
  return result;
}

// Open MPI 4 and 5 name the daemon that has gone.
std::string lost_host(std::string_view report) {
  constexpr std::array<std::string_view, 2> about = {"lost communication with a remote daemon",
                                                     "lost connection to a remote daemon"};
  const bool is_about_hosts =
      std::ranges::any_of(about, [&](auto text) { return report.find(text) != std::string_view::npos; });
  constexpr std::string_view mark = "Remote daemon";
  const auto daemon = report.find(mark);
  if (!is_about_hosts || daemon == std::string_view::npos) return "";
  constexpr std::string_view on = " on node ";
  const auto begin = report.find(on, daemon);
  if (begin == std::string_view::npos) return "";
  const auto name = report.substr(begin + on.size());
  const auto end = std::ranges::find_if(name, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  return std::string(name.begin(), end);
}

}  // namespace hortator::launching
