#include "io/weight_folder.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "io/file_error.hpp"
#include "io/raw_file.hpp"
#include "io/system_error.hpp"

namespace hortator::io {
namespace {

namespace fs = std::filesystem;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

void remove(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw_system_error(text::concat("remove ", path), error.value());
}

}  // namespace

WeightFolder::WeightFolder(fs::path folder, std::string id, WeightFileNames names)
    : folder_(std::move(folder)), id_(std::move(id)), names_(std::move(names)) {}

fs::path WeightFolder::aside(const std::string& name) const { return folder_ / ("." + name + ".new-" + id_); }

void WeightFolder::begin() const {
  if (fs::exists(folder_) && !fs::is_directory(folder_)) {
    throw FileError({.what = text::concat(folder_, " is not a folder"), .hint = "name a folder, new or not"});
  }
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw_system_error(text::concat("create the folder ", folder_), error.value());
}

void WeightFolder::move_in(const std::string& name) const { io::rename(aside(name), folder_ / name); }

void WeightFolder::remove_others(const std::vector<std::string>& files, bool has_index) const {
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const auto name = entry.path().filename().string();
    const bool stays = contains(files, name) || (has_index && name == names_.index());
    if (names_.has(name) && !stays) others.push_back(entry.path());
  }
  for (const auto& other : others) remove(other);
}

void WeightFolder::publish(const std::vector<std::string>& files, bool has_index) const {
  const bool replaces_shards =
      has_index && std::ranges::any_of(files, [&](const std::string& name) { return fs::exists(folder_ / name); });
  if (replaces_shards) {
    remove(folder_ / names_.index());
    sync_folder(folder_);
  }
  for (const auto& name : files) move_in(name);
  sync_folder(folder_);
  if (has_index) {
    move_in(names_.index());
    sync_folder(folder_);
  }
  remove_others(files, has_index);
  sync_folder(folder_);
}

void WeightFolder::abandon(const std::vector<std::string>& files) const noexcept {
  std::error_code unused;
  for (const auto& name : files) fs::remove(aside(name), unused);
  fs::remove(aside(names_.index()), unused);
}

}  // namespace hortator::io
