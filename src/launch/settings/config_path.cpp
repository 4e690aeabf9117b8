#include "launch/settings/config_path.hpp"

#include <pwd.h>

#include <algorithm>

namespace hortator::launching {
namespace {

namespace fs = std::filesystem;

// Expands "~" as Python's expanduser does. "~name/..." with an unknown user name stays unchanged.
fs::path expand_home(const fs::path& path, std::string home) {
  const auto text = path.string();
  if (!text.starts_with('~')) return path;
  const auto end = std::min(text.find('/'), text.size());
  if (end > 1) {
    const auto* user = getpwnam(text.substr(1, end - 1).c_str());
    if (user == nullptr) return path;
    home = user->pw_dir;
  }
  while (home.ends_with('/')) home.pop_back();
  const auto expanded = home + text.substr(end);
  return expanded.empty() ? "/" : expanded;
}

}  // namespace

fs::path accelerate_config_path(const UserFolders& folders) {
  const auto base = folders.hf_home ? fs::path(*folders.hf_home)
                                    : fs::path(folders.xdg_cache_home.value_or("~/.cache")) / "huggingface";
  return expand_home(base, folders.home) / "accelerate" / "default_config.yaml";
}

}  // namespace hortator::launching
