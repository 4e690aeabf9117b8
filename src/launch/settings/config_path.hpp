#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hortator::launching {

/// The variables that decide where a user's files are. The caller fills it from the environment.
struct UserFolders {
  std::string home = "";
  std::optional<std::string> hf_home = {};         ///< HF_HOME
  std::optional<std::string> xdg_cache_home = {};  ///< XDG_CACHE_HOME
};

/// Where `accelerate config` stores its answers, so that a user of Accelerate need not give them again.
std::filesystem::path accelerate_config_path(const UserFolders& folders);

/// The folders in which a centre keeps settings for all users, highest first: hortator/ in those of XDG_CONFIG_DIRS
/// (/etc/xdg if it is unset or empty; relative folders are ignored), then /etc/hortator.
std::vector<std::filesystem::path> central_folders(const std::optional<std::string>& xdg_config_dirs);

}  // namespace hortator::launching
