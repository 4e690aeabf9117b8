#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "launch/restarts/keeping.hpp"

namespace hortator::tools {

/// The commands for the nodes of a launch, with one folder for all of them.
struct KeeperPlan {
  std::filesystem::path folder = {};
  std::vector<launching::KeeperCommand> commands = {};
};

/// The keepers of a launch (`hortator keep`), one a node. They remove their folders when this object or this process
/// ends, however it ends.
class Keepers {
 public:
  /// Starts them and waits until they have their folders. Throws Error if one cannot.
  explicit Keepers(KeeperPlan plan);
  /// Waits until the folders are removed, for a limited time.
  ~Keepers();
  Keepers(const Keepers&) = delete;
  Keepers& operator=(const Keepers&) = delete;

  /// The number of the newest checkpoint in the memory of this machine, -1 if there is none.
  std::int64_t newest_checkpoint() const;

  /// Starts those again that have ended: the folder of a killed keeper is still there. Returns the hosts that could not
  /// be reached, with a message; they are left alone from then on.
  std::vector<std::string> renew();

 private:
  struct Running {
    launching::KeeperCommand command;
    pid_t process = -1;
    int input = -1;  ///< ends the keeper when it is closed
  };

  static void start(Running& keeper);
  static void end(Running& keeper) noexcept;
  static bool has_ended(const Running& keeper);

  std::filesystem::path folder_;
  std::vector<Running> running_;
};

/// Plans them with a new folder in `parent`.
KeeperPlan plan_keepers(const launching::LaunchRequest& request, const launching::LaunchEnvironment& environment,
                        const std::filesystem::path& parent);

}  // namespace hortator::tools
