#include "launch/settings/config_path.hpp"

#include <pwd.h>

#include <algorithm>

#include "core/text/text.hpp"

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

std::vector<fs::path> central_folders(const std::optional<std::string>& xdg_config_dirs) {
  const bool is_given = xdg_config_dirs && !xdg_config_dirs->empty();
  std::vector<fs::path> folders;
  for (const auto& folder : text::split(is_given ? *xdg_config_dirs : "/etc/xdg", ':')) {
    if (fs::path(folder).is_absolute()) folders.push_back(fs::path(folder) / "hortator");
  }
  folders.emplace_back("/etc/hortator");
  return folders;
}

}  // namespace hortator::launching
