#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hortator::launching {

/// What decides where a user's files lie; whoever asks the environment fills it in.
struct UserPlaces {
  std::string home = "";
  std::optional<std::string> hf_home = {};         ///< HF_HOME
  std::optional<std::string> xdg_cache_home = {};  ///< XDG_CACHE_HOME
};

/// Where `accelerate config` has put its answers: what a user of the reference has said already need not be asked
/// again.
std::filesystem::path accelerate_config_path(const UserPlaces& places);

}  // namespace hortator::launching
