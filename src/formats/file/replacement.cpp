#include "formats/file/replacement.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <random>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/folder_listing.hpp"
#include "formats/file/raw_file.hpp"

namespace hortator::formats {
namespace {

namespace fs = std::filesystem;

std::string time_stamp() {
  using namespace std::chrono;
  const auto now = system_clock::now().time_since_epoch();
  const std::time_t seconds = duration_cast<std::chrono::seconds>(now).count();
  const auto fraction = duration_cast<microseconds>(now).count() % 1'000'000;
  return core::utc(seconds, "%Y%m%dT%H%M%S") + text::print(".%06d", static_cast<int>(fraction));
}

}  // namespace

bool remove_folder(const fs::path& folder, const Ownership& ownership) noexcept {
  std::error_code error;
  const bool is_link = fs::is_symlink(folder, error);
  if (!is_link) fs::remove(folder / ownership.seal, error);
  // A folder that cannot be listed is not removed either.
  for (const auto& name : is_link ? std::vector<std::string>() : names_in(folder)) {
    if (ownership.is_ours(name)) fs::remove(folder / name, error);
    if (name == ownership.tree) fs::remove_all(folder / name, error);
  }
  fs::remove(folder, error);
  return !error;
}

std::string replacement_id() {
  std::array<char, 16> salt{};
  std::snprintf(salt.data(), salt.size(), "-%08x", static_cast<unsigned>(std::random_device()()));
  return time_stamp() + salt.data();
}

bool is_replacement_id(std::string_view text) {
  constexpr std::string_view pattern = "dddddddd.dddddd.dddddd-xxxxxxxx";
  return text.size() == pattern.size() && text[8] == 'T' && text[15] == '.' && text[22] == '-' &&
         text.find_first_not_of("0123456789abcdefT.-") == std::string_view::npos;
}

Replacement::Replacement(fs::path target, std::string id, Ownership ownership)
    : target_(std::move(target)), id_(std::move(id)), ownership_(std::move(ownership)) {}

fs::path Replacement::beside(const std::string& tag) const {
  auto path = target_;
  path += "." + tag + "-" + id_;
  return path;
}

fs::path Replacement::staged() const { return beside("new"); }
fs::path Replacement::replaced() const { return beside("old"); }

void Replacement::require_replaceable() const {
  if (!fs::exists(fs::symlink_status(target_))) return;
  if (!fs::is_directory(target_)) {
    throw FileError(
        {.what = text::concat(target_, " is not a folder"), .hint = "name a new folder or one that was saved before"});
  }
  const bool is_sealed = fs::exists(target_ / ownership_.seal);
  for (const auto& entry : fs::directory_iterator(target_)) {
    const auto name = entry.path().filename().string();
    if (ownership_.is_ours(name) || (is_sealed && name == ownership_.tree)) continue;
    throw FileError(
        {.what = text::concat("The folder ", target_, " holds ", text::quote(name), ", which was not saved here"),
         .why = "saving replaces the folder as a whole, and that would be lost",
         .hint = "name a new folder or one that was saved before"});
  }
}

void Replacement::remove_killed() const {
  for (const auto* mark : {".new-", ".gone-"}) {
    const auto prefix = target_.filename().string() + mark;
    for (const auto& name : names_in(target_.parent_path())) {
      if (!name.starts_with(prefix)) continue;
      const auto id = name.substr(prefix.size());
      if (!is_replacement_id(id) || id >= id_ || remove_folder(target_.parent_path() / name, ownership_)) continue;
      log::warn(target_.parent_path() / name, " of a killed save could not be removed; it is not needed");
    }
  }
}

void Replacement::begin() const {
  require_replaceable();
  remove_killed();
  make_folder_durably(target_.parent_path());
  std::error_code error;
  fs::create_directory(staged(), error);
  if (error) throw_system_error(text::concat("create the folder ", staged()), error.value());
}

void Replacement::move_old_aside() const {
  if (fs::exists(target_)) formats::rename(target_, replaced());
}

void Replacement::move_new_in() const { formats::rename(staged(), target_); }

void Replacement::take_new_out() const noexcept {
  std::error_code unused;
  fs::rename(target_, staged(), unused);
}

void Replacement::put_old_back() const noexcept {
  std::error_code unused;
  fs::rename(replaced(), target_, unused);
}

fs::path Replacement::put_away(const fs::path& old, const char* tag) const {
  const auto id = old.string().substr(target_.string().size() + std::string_view(".old-").size());
  const auto aside = fs::path(target_) += text::concat('.', tag, '-', id);
  formats::rename(old, aside);
  return aside;
}

void Replacement::remove_old() const noexcept {
  try {
    std::vector<fs::path> gone;
    for (const auto& old : generations(target_)) {
      if (old == target_) continue;
      if (!ownership_.is_damaged || !ownership_.is_damaged(old)) {
        gone.push_back(put_away(old, "gone"));
      } else {
        log::warn("What was in ", target_, " cannot be read as a whole, and is kept in ", put_away(old, "damaged"));
      }
    }
    if (!gone.empty()) sync_folder(target_.parent_path());  // before their files are removed
    for (const auto& folder : gone) {
      if (!remove_folder(folder, ownership_))
        log::warn("The older ", folder, " could not be removed; it is no longer needed");
    }
  } catch (const std::exception& error) {
    log::warn("Nothing older than ", target_, " could be removed; it is no longer needed: ", error.what());
  }
}

void Replacement::publish() const {
  sync_folder(staged());
  require_replaceable();
  move_old_aside();
  try {
    move_new_in();
  } catch (...) {
    put_old_back();
    throw;
  }
  // The new name must be durable before the older folder is removed.
  try {
    sync_folder(target_.parent_path());
  } catch (...) {
    take_new_out();
    put_old_back();
    throw;
  }
  remove_old();
}

void Replacement::abandon() const noexcept {
  try {
    remove_folder(staged(), ownership_);
  } catch (const std::exception& error) {
    log::warn(staged(), " could not be removed: ", error.what());
  }
}

std::vector<fs::path> generations(const fs::path& target) {
  const auto prefix = target.filename().string() + ".old-";
  std::vector<std::string> old;
  for (const auto& name : names_in(target.parent_path())) {
    if (name.starts_with(prefix) && is_replacement_id(std::string_view(name).substr(prefix.size())))
      old.push_back(name);
  }
  std::sort(old.rbegin(), old.rend());  // ids sort by time
  std::vector<fs::path> found;
  if (fs::exists(fs::symlink_status(target))) found.push_back(target);
  for (const auto& name : old) found.push_back(target.parent_path() / name);
  return found;
}

}  // namespace hortator::formats
