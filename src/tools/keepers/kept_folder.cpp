#include "tools/keepers/kept_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <hortator/error.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto lock_name = "keeper.lock";
// A keeper locks its folder at once.
constexpr std::time_t unlocked_seconds = 60;
// A keeper that looks for abandoned folders may hold the lock of a new one for a moment, and remove it.
constexpr int locking_attempts = 100;

bool is_own_folder(const fs::path& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid();
}

bool is_old(const fs::path& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && std::time(nullptr) - facts.st_mtime > unlocked_seconds;
}

bool is_same_file(int open, const fs::path& path) {
  struct stat held {};
  struct stat found {};
  return fstat(open, &held) == 0 && lstat(path.c_str(), &found) == 0 && held.st_dev == found.st_dev &&
         held.st_ino == found.st_ino;
}

int open_lock(const fs::path& folder, int flags) {
  return ::open((folder / lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

// Holds the lock meanwhile, so that no keeper takes the folder over.
void remove_if_abandoned(const fs::path& folder) {
  const int lock = open_lock(folder, 0);
  const bool is_abandoned = lock < 0 ? errno == ENOENT && is_old(folder) : flock(lock, LOCK_EX | LOCK_NB) == 0;
  std::error_code ignored;
  if (is_abandoned) fs::remove_all(folder, ignored);
  if (lock >= 0) ::close(lock);
}

// Several launches may do it at once: what is gone already is no error.
void remove_abandoned(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder.parent_path(), error), end; !error && entry != end; entry.increment(error)) {
    const auto& path = entry->path();
    if (path == folder || !path.filename().string().starts_with(kept_prefix()) || !is_own_folder(path)) continue;
    remove_if_abandoned(path);
  }
}

[[noreturn]] void fail(const fs::path& folder, const std::string& why) {
  throw Error({.what = text::concat("No folder for checkpoints in memory can be made at ", folder.string(), ": ", why),
               .hint = "name another folder with --memory-folder"});
}

// Anything else of that name is not a keeper's: a folder of the user, which a keeper would remove.
bool may_be_kept(const fs::path& folder) {
  std::error_code unknown;
  return fs::exists(fs::symlink_status(folder / lock_name, unknown)) || (fs::is_empty(folder, unknown) && !unknown);
}

// -1 while another process holds the lock, or removes the folder.
int locked(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail(folder, std::strerror(errno));
  std::error_code unknown;
  if (!fs::exists(fs::symlink_status(folder, unknown))) return -1;
  if (!is_own_folder(folder)) fail(folder, "there is something of that name that is not this user's folder");
  if (!may_be_kept(folder)) return -1;
  const int lock = open_lock(folder, O_CREAT);
  if (lock < 0 && errno != ENOENT) fail(folder, std::strerror(errno));
  if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && is_same_file(lock, folder / lock_name)) return lock;
  if (lock >= 0) ::close(lock);
  return -1;
}

}  // namespace

std::string kept_prefix() { return text::concat("hortator-", geteuid(), '-'); }

KeptFolder::KeptFolder(fs::path folder) : folder_(std::move(folder)) {
  remove_abandoned(folder_);
  for (int i = 0; i < locking_attempts; ++i) {
    lock_ = locked(folder_);
    if (lock_ >= 0) return;
    std::this_thread::sleep_for(20ms);
  }
  fail(folder_, may_be_kept(folder_) ? "another keeper uses it" : "there is a folder of that name that is no keeper's");
}

KeptFolder::~KeptFolder() { ::close(lock_); }

void KeptFolder::remove(std::chrono::milliseconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::error_code error;
  do {
    fs::remove_all(folder_, error);
    std::error_code unknown;
    if (!fs::exists(folder_, unknown) && !unknown) return;
    std::this_thread::sleep_for(100ms);
  } while (std::chrono::steady_clock::now() < end);
  throw Error(
      {.what = text::concat("The folder ", folder_.string(), " with checkpoints in memory could not be removed: ",
                            error ? error.message() : "something writes to it"),
       .why = "it takes memory until the node starts again",
       .hint = "remove it"});
}

}  // namespace hortator::tools
