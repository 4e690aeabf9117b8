#include "launch/restarts/keeping.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "launch/job/quote.hpp"
#include "launch/restarts/host_name.hpp"

namespace hortator::launching {
namespace {

void add(std::vector<std::string>& hosts, std::string_view name) {
  if (!name.empty() && std::ranges::count(hosts, name) == 0) hosts.emplace_back(name);
}

// "2" of "n1 slots=2 max_slots=4"; empty: the line names none.
std::string_view slots_of(std::string_view line) {
  constexpr std::string_view mark = " slots=";
  const auto at = line.find(mark);
  if (at == std::string_view::npos) return {};
  const auto number = line.substr(at + mark.size());
  return number.substr(0, number.find_first_not_of("0123456789"));
}

bool is_this_host(std::string_view host, const KeeperRequest& keepers) {
  return host == "localhost" || host == "127.0.0.1" || without_domain(host) == without_domain(keepers.this_host);
}

// A lost node ends neither the step nor the other keepers.
KeeperCommand by_srun(int nodes, const KeeperRequest& keepers) {
  KeeperCommand command{
      .command = {"srun", "--overlap", "--no-kill", "--kill-on-bad-exit=0", "--export=ALL",
                  text::concat("--nodes=", nodes), text::concat("--ntasks=", nodes), "--ntasks-per-node=1"},
      .keepers = nodes,
      .where = "the nodes of the allocation"};
  command.command.insert(command.command.end(), keepers.keeper.begin(), keepers.keeper.end());
  return command;
}

KeeperCommand on_host(const std::string& host, const KeeperRequest& keepers) {
  if (host.starts_with('-')) {
    throw UsageError({.what = "The name of a host is " + text::quote(host),
                      .why = "a remote shell takes it for an option",
                      .hint = "check --host and --hostfile"});
  }
  KeeperCommand command{.command = keepers.remote_shell, .where = host};
  command.command.push_back(host);
  command.command.push_back(shell_line(keepers.keeper));  // the remote shell parses it
  return command;
}

}  // namespace

std::vector<std::string> hosts_of_list(std::string_view hosts) {
  std::vector<std::string> names;
  for (const auto& one : text::split(std::string(hosts), ',')) add(names, text::split(one, ':').front());
  return names;
}

std::vector<std::string> hosts_of_file(std::string_view content) {
  std::vector<std::string> names;
  for (const auto& entry : entries_of_file(content)) add(names, std::string_view(entry).substr(0, entry.find(':')));
  return names;
}

std::vector<std::string> entries_of_file(std::string_view content) {
  std::vector<std::string> entries;
  for (const auto& line : text::split(std::string(content), '\n')) {
    const auto entry = std::string_view(line).substr(0, line.find('#'));
    const auto begin = entry.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) continue;
    const auto listed = entry.substr(begin);
    const auto name = listed.substr(0, listed.find_first_of(" \t\r"));
    const auto slots = name.find(':') == std::string_view::npos ? slots_of(listed) : std::string_view();
    add(entries, slots.empty() ? std::string(name) : text::concat(name, ':', slots));
  }
  return entries;
}

std::vector<KeeperCommand> keeper_commands(const LaunchEnvironment& environment, const KeeperRequest& keepers) {
  if (environment.in_slurm) return {by_srun(keepers.nodes, keepers)};  // also on spare nodes
  std::vector<KeeperCommand> commands;
  if (keepers.hosts.empty()) return {{.command = keepers.keeper, .where = "this machine"}};
  for (const auto& host : keepers.hosts) {
    commands.push_back(is_this_host(host, keepers) ? KeeperCommand{.command = keepers.keeper, .where = "this machine"}
                                                   : on_host(host, keepers));
  }
  return commands;
}

}  // namespace hortator::launching
