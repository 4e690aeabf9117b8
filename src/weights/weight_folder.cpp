#include "weights/weight_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/raw_file.hpp"

namespace hortator::weights {
namespace {

namespace fs = std::filesystem;

const std::string hidden = ".new-";  // then the id of the save
const std::string separator = "--";  // between the id and the file's own name
const std::string linked = "link--";

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) formats::throw_system_error(text::concat("remove ", path), error.value());
}

}  // namespace

WeightFolder::WeightFolder(fs::path folder, std::string id, WeightFileNames names)
    : folder_(std::move(folder)), id_(std::move(id)), names_(std::move(names)) {}

// Readers select files by extension and load any index that they find: so a hidden file keeps its extension, and a
// hidden index does not.
fs::path WeightFolder::aside(const std::string& name) const { return folder_ / (hidden + id_ + separator + name); }
fs::path WeightFolder::index_aside() const { return folder_ / (aside(names_.index()).filename().string() + ".tmp"); }

void WeightFolder::begin() const {
  if (fs::exists(folder_) && !fs::is_directory(folder_)) {
    throw formats::FileError({.what = text::concat(folder_, " is not a folder"), .hint = "name a folder"});
  }
  formats::make_folder_durably(folder_);
}

void WeightFolder::publish(const WeightShards& shards, const std::vector<WeightToSave>& weights) {
  if (shards.is_sharded()) {
    publish_shards(shards, weights);
  } else {
    for (const auto& file : shards.files) move_in(file.name);
  }
  formats::sync_folder(folder_);
  is_visible_ = true;
  remove_others(shards);
  formats::sync_folder(folder_);
}

void WeightFolder::publish_shards(const WeightShards& shards, const std::vector<WeightToSave>& weights) {
  const bool replaces =
      std::ranges::any_of(shards.files, [&](const WeightFile& file) { return fs::exists(folder_ / file.name); });
  if (replaces) {
    auto hidden = shards;
    for (auto& file : hidden.files) file.name = aside(file.name).filename();
    write_index(index_json(hidden, weights));
    for (const auto& file : shards.files) publish_file(file.name);
  } else {
    for (const auto& file : shards.files) move_in(file.name);
  }
  formats::sync_folder(folder_);
  write_index(index_json(shards, weights));
}

void WeightFolder::write_index(const std::string& json) {
  auto file = formats::RawFile::create(index_aside());
  file.write_at(0, json.data(), json.size());
  file.sync();
  file.close();
  formats::rename(index_aside(), folder_ / names_.index());
  is_visible_ = true;
  formats::sync_folder(folder_);
}

void WeightFolder::move_in(const std::string& name) {
  const bool is_new = !fs::exists(folder_ / name);
  formats::rename(aside(name), folder_ / name);
  if (is_new) moved_.push_back(name);
}

/// Gives a file its own name and keeps the hidden one, which the published index still has. On a file system without
/// hard links that index is broken until the last file is renamed, and readers report a missing file.
void WeightFolder::publish_file(const std::string& name) const {
  const auto second = aside(linked + name);
  if (::link(aside(name).c_str(), second.c_str()) == 0) return formats::rename(second, folder_ / name);
  const std::set<int> no_links = {EPERM, EOPNOTSUPP, ENOSYS, EMLINK};
  if (!no_links.contains(errno)) formats::throw_system_error(text::concat("link ", aside(name)), errno);
  formats::rename(aside(name), folder_ / name);
}

bool WeightFolder::is_ours(const std::string& name) const {
  if (!name.starts_with(hidden)) return names_.has(name);
  const auto own = name.rfind(separator);
  return own != std::string::npos && name.substr(own + separator.size()).starts_with(names_.stem);
}

void WeightFolder::remove_others(const WeightShards& shards) const {
  std::set<std::string> stay;
  for (const auto& file : shards.files) stay.insert(file.name);
  if (shards.is_sharded()) stay.insert(names_.index());
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const auto name = entry.path().filename().string();
    if (is_ours(name) && !stay.contains(name)) others.push_back(entry.path());
  }
  for (const auto& other : others) remove_file(other);
}

void WeightFolder::abandon(const WeightShards& shards) const noexcept {
  if (is_visible_) return;
  std::error_code unused;
  for (const auto& file : shards.files) fs::remove(aside(file.name), unused);
  for (const auto& name : moved_) fs::remove(folder_ / name, unused);
  fs::remove(index_aside(), unused);
}

}  // namespace hortator::weights
