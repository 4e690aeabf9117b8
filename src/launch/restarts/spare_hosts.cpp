#include "launch/restarts/spare_hosts.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/text/text.hpp"
#include "launch/restarts/host_name.hpp"

namespace hortator::launching {
namespace {

bool is_host(std::string_view entry, std::string_view host) {
  return without_domain(entry.substr(0, entry.find(':'))) == without_domain(host);
}

int rounded_up(int number, int divisor) { return (number + divisor - 1) / divisor; }

}  // namespace

HostSupply supply_of(const LaunchRequest& request, const std::vector<std::string>& at_hand) {
  HostSupply supply{.hosts = request.hosts.empty() ? at_hand : text::split(request.hosts, ',')};
  for (const auto& excluded : text::split(request.excluded_hosts, ','))
    std::erase_if(supply.hosts, [&](const std::string& one) { return is_host(one, excluded); });
  const auto hosts = std::max(1, static_cast<int>(supply.hosts.size()));
  supply.needed = request.ranks_per_node ? rounded_up(request.ranks, *request.ranks_per_node)
                                         : std::min(request.nodes.value_or(hosts), hosts);
  supply.ranks_per_host = request.ranks_per_node.value_or(rounded_up(request.ranks, supply.needed));
  return supply;
}

LaunchRequest without_host(const LaunchRequest& request, const HostSupply& supply, std::string_view host,
                           bool by_srun) {
  auto result = request;
  auto left = supply.hosts;
  std::erase_if(left, [&](const std::string& one) { return is_host(one, host); });
  if (left.empty()) return request;
  if (by_srun && request.hosts.empty()) {
    result.excluded_hosts += text::concat(request.excluded_hosts.empty() ? "" : ",", host);
  } else {
    result.hosts = text::join(left, ",");
    result.hostfile.clear();
  }
  const auto hosts = static_cast<int>(left.size());
  if (hosts >= supply.needed) return result;
  result.ranks = hosts * supply.ranks_per_host;
  if (request.nodes || by_srun) result.nodes = hosts;
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
