#include "tools/launch/keeper_plan.hpp"

#include <unistd.h>

#include <array>
#include <hortator/error.hpp>
#include <string>

#include "core/text/text.hpp"
#include "core/time.hpp"
#include "core/whole_file.hpp"
#include "launch/restarts/keeping.hpp"
#include "tools/keepers/kept_folder.hpp"
#include "tools/launch/launch_environment.hpp"

namespace hortator::tools {
namespace {

std::string this_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::vector<std::string> hosts_of(const launching::LaunchRequest& request) {
  if (!request.hosts.empty()) return launching::hosts_of_list(request.hosts);
  if (request.hostfile.empty()) return hosts_at_hand();
  const auto content = core::read_whole(request.hostfile);
  if (!content) throw UsageError({.what = "--hostfile: " + text::quote(request.hostfile) + " cannot be read"});
  return launching::hosts_of_file(*content);
}

}  // namespace

KeeperPlan plan_keepers(const launching::LaunchRequest& request, const launching::LaunchEnvironment& environment,
                        const std::filesystem::path& parent) {
  const auto id = text::concat(kept_prefix(), getpid(), '-', static_cast<long long>(core::unix_time() * 1e3));
  KeeperPlan plan{.folder = std::filesystem::absolute(parent) / id};
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  plan.commands = launching::keeper_commands(environment, {.hosts = hosts_of(request),
                                                           .nodes = nodes_at_hand(),
                                                           .this_host = this_host(),
                                                           .remote_shell = remote_shell(),
                                                           .keeper = {self, "keep", plan.folder.string()}});
  return plan;
}

}  // namespace hortator::tools
