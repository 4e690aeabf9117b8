#include "launching/config_path.hpp"

namespace hortator::launching {
namespace {

namespace fs = std::filesystem;

// A home of another user ("~name/...") stays as it is, as in the reference.
fs::path expand_home(const fs::path& path, const std::string& home) {
  const auto words = path.string();
  if (words == "~") return home;
  return words.starts_with("~/") ? fs::path(home) / words.substr(2) : path;
}

}  // namespace

fs::path accelerate_config_path(const UserPlaces& places) {
  const auto base =
      places.hf_home ? fs::path(*places.hf_home) : fs::path(places.xdg_cache_home.value_or("~/.cache")) / "huggingface";
  return expand_home(base, places.home) / "accelerate" / "default_config.yaml";
}

}  // namespace hortator::launching
