#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Which hosts a restart leaves out. Pure functions.
namespace hortator::launching {

/// What a failed attempt shows of a host, the worst first.
enum class HostSign {
  lost,     ///< it cannot be reached
  failed,   ///< it ended the attempt: its device or storage, other replicas' bits, an error that no other host has
  damaged,  ///< bytes of checkpoints in its memory or on its disk have changed
  stalled,  ///< the other ranks waited in vain for one of it
  slow,     ///< the other ranks waited for one of it in each step
};

struct HostFinding {
  std::string host = {};
  HostSign sign = HostSign::failed;

  friend bool operator==(const HostFinding&, const HostFinding&) = default;
};

/// The hosts of a launch.
struct HostSupply {
  std::vector<std::string> hosts = {};  ///< that it may use: "n1", or with slots "n1:2"
  int needed = 1;                       ///< of them, for as many ranks as before
  int ranks_per_host = 1;
  int ranks_together = 1;         ///< the number of ranks must be a multiple of it
  bool drops_lost_hosts = false;  ///< the scheduler takes lost hosts out of `hosts` itself
};

/// A host that the findings of several attempts speak against.
struct JudgedHost {
  std::string name = {};      ///< as the finding has it
  std::string reason = {};    ///< "was slow in 2 attempts"
  std::string kept_for = {};  ///< why the launch cannot do without it; empty: it is left out

  bool is_left_out() const { return kept_for.empty(); }
};

/// Judges the hosts that the last of `attempts`, the findings of each failed attempt of a launch, speaks against. With
/// a spare host, one that is lost or has failed is left out at once, and one that was damaged, stalled or slow after
/// two attempts. Without a spare, only one that is lost or has failed twice is left out, if the ranks that are left can
/// form the mesh. Hosts that reach these numbers and stay come with the reason.
std::vector<JudgedHost> judge_hosts(const std::vector<std::vector<HostFinding>>& attempts, const HostSupply& supply);

/// The number of ranks that hold one model, of a mesh as RankStatus::mesh has it: 4 of "replicate 2 x tensor 4".
int ranks_of_model(std::string_view mesh);

}  // namespace hortator::launching
