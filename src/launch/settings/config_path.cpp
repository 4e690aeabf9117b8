#include "launch/settings/config_path.hpp"

#include <pwd.h>

#include <algorithm>

namespace hortator::launching {
namespace {

namespace fs = std::filesystem;

// As Python's expanduser: also "~name/...", which stays as it is where nobody has that name.
fs::path expand_home(const fs::path& path, std::string home) {
  const auto words = path.string();
  if (!words.starts_with('~')) return path;
  const auto end = std::min(words.find('/'), words.size());
  if (end > 1) {
    const auto* user = getpwnam(words.substr(1, end - 1).c_str());
    if (user == nullptr) return path;
    home = user->pw_dir;
  }
  while (home.ends_with('/')) home.pop_back();
  const auto expanded = home + words.substr(end);
  return expanded.empty() ? "/" : expanded;
}

}  // namespace

fs::path accelerate_config_path(const UserPlaces& places) {
  const auto base =
      places.hf_home ? fs::path(*places.hf_home) : fs::path(places.xdg_cache_home.value_or("~/.cache")) / "huggingface";
  return expand_home(base, places.home) / "accelerate" / "default_config.yaml";
}

}  // namespace hortator::launching
