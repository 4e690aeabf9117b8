#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hortator::launching {

/// The variables that decide where a user's files are. The caller fills it from the environment.
struct UserFolders {
  std::string home = "";
  std::optional<std::string> hf_home = {};         ///< HF_HOME
  std::optional<std::string> xdg_cache_home = {};  ///< XDG_CACHE_HOME
};

/// Where `accelerate config` stores its answers, so that a user of Accelerate need not give them again.
std::filesystem::path accelerate_config_path(const UserFolders& folders);

}  // namespace hortator::launching
