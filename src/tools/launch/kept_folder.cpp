#include "tools/launch/kept_folder.hpp"

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
constexpr int removals = 100;

bool is_own_folder(const fs::path& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid();
}

bool is_old(const fs::path& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && std::time(nullptr) - facts.st_mtime > unlocked_seconds;
}

int open_lock(const fs::path& folder, int flags) {
  return ::open((folder / lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

bool is_abandoned(const fs::path& folder) {
  const int lock = open_lock(folder, 0);
  if (lock < 0) return errno == ENOENT && is_old(folder);
  const bool is_free = flock(lock, LOCK_EX | LOCK_NB) == 0;
  ::close(lock);
  return is_free;
}

// Several launches may do it at once: what is gone already is no error.
void remove_abandoned(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder.parent_path(), error), end; !error && entry != end; entry.increment(error)) {
    const auto& path = entry->path();
    if (path == folder || !path.filename().string().starts_with(kept_prefix()) || !is_own_folder(path)) continue;
    std::error_code ignored;
    if (is_abandoned(path)) fs::remove_all(path, ignored);
  }
}

[[noreturn]] void fail(const fs::path& folder, const std::string& why) {
  throw Error({.what = text::concat("No folder for checkpoints in memory can be made at ", folder.string(), ": ", why),
               .hint = "name another folder with --memory-folder"});
}

}  // namespace

std::string kept_prefix() { return text::concat("hortator-", geteuid(), '-'); }

KeptFolder::KeptFolder(fs::path folder) : folder_(std::move(folder)) {
  remove_abandoned(folder_);
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) fail(folder_, std::strerror(errno));
  if (!is_own_folder(folder_)) fail(folder_, "there is something of that name that is not this user's folder");
  lock_ = open_lock(folder_, O_CREAT);
  if (lock_ < 0) fail(folder_, std::strerror(errno));
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(lock_);
  fail(folder_, "another keeper uses it");
}

KeptFolder::~KeptFolder() { ::close(lock_); }

void KeptFolder::remove() const {
  for (int i = 0; i < removals; ++i) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    std::error_code unknown;
    if (!fs::exists(folder_, unknown)) return;
    std::this_thread::sleep_for(100ms);
  }
}

}  // namespace hortator::tools
