#include "tools/estimate/hub_cache.hpp"

#include <algorithm>
#include <vector>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::tools::estimates {
namespace {

namespace fs = std::filesystem;

// "org/name" or "name", of letters that cannot lead elsewhere.
bool is_model_name(const std::string& name) {
  const bool has_letters_only = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == '/';
  });
  return has_letters_only && !name.empty() && !name.starts_with('.') && !name.starts_with('/') &&
         std::count(name.begin(), name.end(), '/') <= 1 && name.find("..") == std::string::npos;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// The only snapshot, for folders without refs.
std::optional<fs::path> only_snapshot(const fs::path& snapshots) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(snapshots, ignored)) found.push_back(entry.path());
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

}  // namespace

fs::path hub_folder(const core::Variables& variables) {
  if (const auto set = core::first_set(variables, {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})) return set->value;
  if (const auto home = variables("HF_HOME")) return fs::path(*home) / "hub";
  const auto cache = variables("XDG_CACHE_HOME");
  return (cache ? fs::path(*cache) : fs::path(variables("HOME").value_or("/")) / ".cache") / "huggingface" / "hub";
}

std::optional<fs::path> hub_snapshot(const std::string& name, const fs::path& hub) {
  const auto at = name.find('@');
  const auto model = name.substr(0, at);
  const auto revision = at == std::string::npos ? std::string("main") : name.substr(at + 1);
  if (!is_model_name(model) || !is_model_name(revision)) return {};
  const auto folder = hub / ("models--" + text::join(text::split(model, '/'), "--"));
  const auto snapshots = folder / "snapshots";
  if (const auto commit = core::read_at_most(folder / "refs" / revision, 1024)) {
    const auto line = text::first_line(*commit);
    if (is_model_name(line) && is_folder(snapshots / line)) return snapshots / line;
  }
  if (is_folder(snapshots / revision)) return snapshots / revision;
  return at == std::string::npos ? only_snapshot(snapshots) : std::nullopt;
}

}  // namespace hortator::tools::estimates
