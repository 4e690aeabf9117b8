#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "launch/restarts/keeping.hpp"
#include "tools/keepers/keeper_process.hpp"

namespace hortator::tools {

/// The commands for the nodes of a launch, with one folder for all of them.
struct KeeperPlan {
  std::filesystem::path folder = {};
  std::vector<launching::KeeperCommand> commands = {};
};

/// The keepers of a launch (`hortator keep`), one a node. They remove their folders when this object or this process
/// ends, however it ends. All start and end at the same time.
class Keepers {
 public:
  /// Starts them and waits until they have their folders. Throws Error if one cannot.
  explicit Keepers(KeeperPlan plan);
  /// Waits until the folders are removed, for a limited time, also those of keepers that were killed. Prints where one
  /// may be left.
  ~Keepers();
  Keepers(const Keepers&) = delete;
  Keepers& operator=(const Keepers&) = delete;

  /// The number of the newest checkpoint in the memory of this machine, -1 if there is none.
  std::int64_t newest_checkpoint() const;

  /// Starts those again that have ended: the folder of a killed keeper is still there. Returns the hosts that could not
  /// be reached, with a message; they are left alone from then on. Returns at once when `is_asked_to_stop` says so,
  /// which is asked several times a second.
  std::vector<std::string> renew(const std::function<bool()>& is_asked_to_stop = {});

 private:
  std::vector<KeeperProcess*> ended_ones();

  std::filesystem::path folder_;
  std::vector<KeeperProcess> running_;
};

}  // namespace hortator::tools
