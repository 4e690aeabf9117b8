#include "launch/restarts/host_choice.hpp"

#include <algorithm>
#include <array>

#include "core/text/text.hpp"
#include "launch/restarts/host_name.hpp"

namespace hortator::launching {
namespace {

/// A sign, and from how many attempts on it counts; 0: never.
struct SignRule {
  HostSign sign;
  std::string_view text;
  int with_spare;
  int without_spare;
};

constexpr std::array<SignRule, 5> sign_rules = {{
    {.sign = HostSign::lost, .text = "was lost", .with_spare = 1, .without_spare = 1},
    {.sign = HostSign::failed, .text = "is suspect: it ended", .with_spare = 1, .without_spare = 2},
    {.sign = HostSign::damaged, .text = "had damaged checkpoints in", .with_spare = 2, .without_spare = 0},
    {.sign = HostSign::stalled, .text = "stalled", .with_spare = 2, .without_spare = 0},
    {.sign = HostSign::slow, .text = "was slow in", .with_spare = 2, .without_spare = 0},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < sign_rules.size(); ++i) {
    if (sign_rules[i].sign != static_cast<HostSign>(i)) return false;
  }
  return true;
}
static_assert(is_in_order());

std::string_view host_in(std::string_view entry) { return without_domain(entry.substr(0, entry.find(':'))); }

bool has_sign(const std::vector<HostFinding>& attempt, std::string_view host, HostSign sign) {
  return std::ranges::any_of(attempt,
                             [&](const HostFinding& one) { return host_in(one.host) == host && one.sign == sign; });
}

int attempts_with(const std::vector<std::vector<HostFinding>>& attempts, std::string_view host, HostSign sign) {
  return static_cast<int>(
      std::ranges::count_if(attempts, [&](const auto& attempt) { return has_sign(attempt, host, sign); }));
}

std::string reason_of(const SignRule& rule, int attempts) {
  if (rule.sign == HostSign::lost) return std::string(rule.text);
  return text::concat(rule.text, ' ', text::count(attempts, "attempt"));
}

/// Why a launch cannot do without a host although the rules leave it out; empty: it can.
std::string need_of(const SignRule& rule, int attempts, const HostSupply& supply) {
  const auto left = static_cast<int>(supply.hosts.size()) - 1;
  if (left == 0) return "there is no other host";
  if (left >= supply.needed || rule.sign == HostSign::lost) return "";
  if (rule.without_spare == 0 || attempts < rule.without_spare) return "no spare host can take its place";
  if (left * supply.ranks_per_host % supply.ranks_together == 0) return "";
  return text::concat("without it there are ", left * supply.ranks_per_host,
                      " ranks, and the mesh needs a multiple of ", supply.ranks_together);
}

}  // namespace

std::vector<JudgedHost> judge_hosts(const std::vector<std::vector<HostFinding>>& attempts, const HostSupply& supply) {
  std::vector<JudgedHost> judged;
  if (attempts.empty()) return judged;
  auto left = supply;
  for (const auto& rule : sign_rules) {
    for (const auto& finding : attempts.back()) {
      const auto name = host_in(finding.host);
      const auto found = std::ranges::find(left.hosts, name, host_in);
      const auto is_judged = [&](const JudgedHost& one) { return host_in(one.name) == name; };
      if (finding.sign != rule.sign || found == left.hosts.end() || std::ranges::any_of(judged, is_judged)) continue;
      const int count = attempts_with(attempts, name, rule.sign);
      if (count < rule.with_spare) continue;
      JudgedHost host{.name = finding.host, .reason = reason_of(rule, count), .kept_for = need_of(rule, count, left)};
      if (host.is_left_out()) {
        left.hosts.erase(found);
        left.needed = std::min(left.needed, static_cast<int>(left.hosts.size()));
      }
      judged.push_back(std::move(host));
    }
  }
  return judged;
}

int ranks_of_model(std::string_view mesh) {
  int ranks = 1;
  auto axes = text::split(std::string(mesh.substr(0, mesh.find(','))), ' ');
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
    long long size = 0;
    const bool is_of_data = axes[i] == "replicate" || axes[i] == "shard";
    if (!is_of_data && text::parse_integer(axes[i + 1], size) && size > 0) ranks *= static_cast<int>(size);
  }
  constexpr std::string_view experts = ", experts over ";
  long long size = 0;
  const auto at = mesh.find(experts);
  if (at != std::string_view::npos && text::parse_integer(mesh.substr(at + experts.size()), size) && size > 0)
    ranks *= static_cast<int>(size);
  return ranks;
}

}  // namespace hortator::launching
