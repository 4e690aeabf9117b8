#include "io/replacement.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <random>

#include "base/log.hpp"
#include "base/text.hpp"
#include "io/file_error.hpp"
#include "io/raw_file.hpp"
#include "io/system_error.hpp"

namespace hortator::io {
namespace {

namespace fs = std::filesystem;

void move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw_system_error(text::concat("rename ", from, " to ", to), error.value());
}

// Removes known files, then the folder, which must be empty by then: a stranger's file is never lost.
bool remove_folder(const fs::path& folder, std::span<const std::string> files) noexcept {
  std::error_code error;
  for (const auto& file : files) fs::remove(folder / file, error);
  fs::remove(folder, error);
  return !error;
}

std::string time_stamp() {
  using namespace std::chrono;
  const auto now = system_clock::now().time_since_epoch();
  const std::time_t seconds = duration_cast<std::chrono::seconds>(now).count();
  const auto fraction = duration_cast<microseconds>(now).count() % 1'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 64> words{};
  const auto length = std::strftime(words.data(), words.size(), "%Y%m%dT%H%M%S", &utc);
  std::snprintf(words.data() + length, words.size() - length, ".%06d", static_cast<int>(fraction));
  return words.data();
}

bool is_id(std::string_view word) {
  constexpr std::string_view pattern = "dddddddd.dddddd.dddddd-xxxxxxxx";
  return word.size() == pattern.size() && word[8] == 'T' && word[15] == '.' && word[22] == '-' &&
         word.find_first_not_of("0123456789abcdefT.-") == std::string_view::npos;
}

}  // namespace

std::string replacement_id() {
  std::array<char, 16> salt{};
  std::snprintf(salt.data(), salt.size(), "-%08x", static_cast<unsigned>(std::random_device()()));
  return time_stamp() + salt.data();
}

Replacement::Replacement(fs::path target, std::string id, std::vector<std::string> files)
    : target_(std::move(target)), id_(std::move(id)), files_(std::move(files)) {}

fs::path Replacement::beside(const std::string& word) const {
  auto path = target_;
  path += "." + word + "-" + id_;
  return path;
}

fs::path Replacement::staged() const { return beside("new"); }
fs::path Replacement::replaced() const { return beside("old"); }

void Replacement::require_replaceable() const {
  if (!fs::exists(fs::symlink_status(target_))) return;
  if (!fs::is_directory(target_)) {
    throw FileError(
        {.what = text::concat(target_, " is not a folder"), .hint = "name a folder that is new or was saved before"});
  }
  for (const auto& entry : fs::directory_iterator(target_)) {
    const auto name = entry.path().filename().string();
    if (std::find(files_.begin(), files_.end(), name) != files_.end()) continue;
    throw FileError(
        {.what = text::concat("the folder ", target_, " holds ", text::quote(name), ", which was not saved here"),
         .why = "saving replaces the folder as a whole, and that would be lost",
         .hint = "name a folder that is new or was saved before"});
  }
}

void Replacement::begin() const {
  require_replaceable();
  std::error_code error;
  fs::create_directories(target_.parent_path(), error);
  if (!error) fs::create_directory(staged(), error);
  if (error) throw_system_error(text::concat("create the folder ", staged()), error.value());
}

void Replacement::move_old_aside() const {
  if (fs::exists(target_)) move(target_, replaced());
}

void Replacement::move_new_in() const { move(staged(), target_); }

void Replacement::take_new_out() const noexcept {
  std::error_code unused;
  fs::rename(target_, staged(), unused);
}

void Replacement::put_old_back() const noexcept {
  std::error_code unused;
  fs::rename(replaced(), target_, unused);
}

void Replacement::remove_old() const {
  if (fs::exists(replaced()) && !remove_folder(replaced(), files_)) {
    log::warn("the older ", replaced(), " could not be removed; it is no longer needed");
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
  // The new name must be on the disk before the older checkpoint goes.
  try {
    sync_folder(target_.parent_path());
  } catch (...) {
    take_new_out();
    put_old_back();
    throw;
  }
  remove_old();
}

void Replacement::abandon() const noexcept { remove_folder(staged(), files_); }

fs::path find_published(const fs::path& target) {
  if (fs::exists(target)) return target;
  const auto prefix = target.filename().string() + ".old-";
  fs::path newest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(target.parent_path(), error)) {
    const auto name = entry.path().filename().string();
    const bool is_old = name.starts_with(prefix) && is_id(std::string_view(name).substr(prefix.size()));
    // An empty one was being removed: its successor had been published.
    if (is_old && !fs::is_empty(entry.path()) && name > newest.filename().string()) newest = entry.path();
  }
  return newest.empty() ? target : newest;
}

}  // namespace hortator::io
