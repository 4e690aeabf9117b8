#include "runtime/identity/folder_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <hortator/error.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/log.hpp"
#include "core/text/text.hpp"

namespace hortator::runtime {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// How often other runs may remove the folder while this one looks at it, before that is an error.
constexpr int max_removals = 1000;

/// An open file.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

enum class Attempt {
  locked,
  busy,        ///< another process holds it
  replaced,    ///< the file was removed since it was opened: try again
  impossible,  ///< the file system has no locks
};

/// Whether the file is still the one of that name.
bool is_at(const Descriptor& file, const fs::path& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(file.number(), &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

// Locks of an open file description: unlike those of a process, they stay when other code closes the same file, and
// unlike flock() they reach other hosts on GPFS and on Lustre.
Attempt try_lock(const Descriptor& file, const fs::path& path) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  int result = 0;
  do {
    result = ::fcntl(file.number(), F_OFD_SETLK, &whole);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return errno == EAGAIN || errno == EACCES ? Attempt::busy : Attempt::impossible;
  return is_at(file, path) ? Attempt::locked : Attempt::replaced;
}

LockHolder read_holder(const Descriptor& file) {
  std::array<char, 4096> bytes{};
  const auto count = ::pread(file.number(), bytes.data(), bytes.size(), 0);
  return parse_holder(count > 0 ? std::string(bytes.data(), static_cast<std::size_t>(count)) : "");
}

void write_holder(const Descriptor& file, const LockHolder& self) {
  const auto json = to_json(self);
  // A record that cannot be written only makes the message of a refusal poorer.
  if (::ftruncate(file.number(), 0) != 0 || ::pwrite(file.number(), json.data(), json.size(), 0) < 0)
    log::warn(folder_lock_file, " cannot be written: ", std::strerror(errno));
}

/// Creates the folder and its parents. Adds those that did not exist to `made`, from the inside to the outside.
/// Returns false if another run removed a part of the path at the same time: the caller tries again.
bool make_folders(const fs::path& folder, std::vector<fs::path>& made) {
  std::error_code error;
  for (auto path = folder; !path.empty() && !fs::exists(path, error) && !error; path = path.parent_path())
    made.push_back(path);
  fs::create_directories(folder, error);
  return error != std::errc::no_such_file_or_directory;
}

[[noreturn]] void refuse(const fs::path& path, const LockHolder& holder) {
  throw UsageError(
      {.what = text::concat("Another run uses the folder ", path.parent_path().string(), ": ", to_string(holder)),
       .why = "two runs in one folder would mix their checkpoints, logs and records",
       .hint = text::concat("wait for that run or stop it, or use another folder (project.dir, or "
                            "HORTATOR_RUN_DIR for the default); if it is certainly gone, remove ",
                            path.string())});
}

std::string name_of(const LockHolder& holder) {
  if (!holder.part.empty()) return holder.part + ", ";
  return holder.ranks > 0 ? text::concat("the Accelerator of ", text::count(holder.ranks, "rank"), ", ") : "";
}

[[noreturn]] void refuse_in_job(const fs::path& path, const LockHolder& holder) {
  throw UsageError({.what = text::concat("Another run of this job uses the folder ", path.parent_path().string(), ": ",
                                         name_of(holder), to_string(holder)),
                    .why = "each would replace the other's checkpoints and logs",
                    .hint = "give each run a run_dir of its own in its settings, each Accelerator a project.dir of its "
                            "own, or end the other one first"});
}

void warn_once(const fs::path& folder, const std::string& reason) {
  static std::once_flag warned;
  std::call_once(warned, [&] {
    log::warn(folder.string(), " cannot be locked (", reason, "): a second run in it would go unnoticed");
  });
}

bool is_unknown(const LockHolder& holder) { return holder.pid == 0; }

bool is_same_run(const LockHolder& a, const LockHolder& b) { return !a.run.empty() && a.run == b.run; }

}  // namespace

fs::path one_path_of(const fs::path& folder) {
  const auto path = (fs::absolute(folder) / "").lexically_normal().parent_path();
  std::error_code error;
  auto result = fs::weakly_canonical(path, error);
  // It looks at each name twice: another run that ends may have removed the folder in between.
  for (int retries = max_removals; error == std::errc::no_such_file_or_directory && retries > 0; --retries)
    result = fs::weakly_canonical(path, error);
  if (error) throw fs::filesystem_error("Cannot resolve the path of a run folder", path, error);
  return result;
}

/// The locked file of a folder, once for each process.
class FolderLock::LockedFile {
 public:
  LockedFile(Descriptor file, fs::path path, std::vector<fs::path> made)
      : file_(std::move(file)), path_(std::move(path)), made_(std::move(made)) {}
  // Removed before the lock is released with the descriptor: a run that waits finds the name gone, and makes a new
  // file.
  ~LockedFile() {
    std::error_code ignored;
    if (is_at(file_, path_)) fs::remove(path_, ignored);
    for (const auto& folder : made_) {
      if (!fs::is_empty(folder, ignored) || ignored || !fs::remove(folder, ignored)) break;
    }
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  /// The one that this process holds, or that it has acquired now; null if there is none to hold.
  static std::shared_ptr<LockedFile> of(const fs::path& folder, const LockHolder& self,
                                        std::chrono::milliseconds patience, OtherRanks others) {
    static std::mutex mutex;
    static std::map<fs::path, std::weak_ptr<LockedFile>> held;
    const std::scoped_lock lock(mutex);
    auto& mine = held[folder];
    if (auto known = mine.lock()) return known;
    std::vector<fs::path> made;
    auto acquired = acquire(folder / folder_lock_file, self, {.patience = patience, .others = others}, made);
    if (!acquired) return nullptr;
    auto locked = std::make_shared<LockedFile>(std::move(*acquired), folder / folder_lock_file, std::move(made));
    mine = locked;
    return locked;
  }

 private:
  struct Manner {
    std::chrono::milliseconds patience;
    OtherRanks others;
  };

  static std::optional<Descriptor> acquire(const fs::path& path, const LockHolder& self, const Manner& manner,
                                           std::vector<fs::path>& made) {
    const auto end = std::chrono::steady_clock::now() + manner.patience;
    int removals = 0;
    for (auto pause = 10ms;; pause = std::min(2 * pause, 500ms)) {
      const bool is_over = std::chrono::steady_clock::now() >= end;
      // The run before may remove the folders at its end, at any moment of these lines.
      const bool is_there = make_folders(path.parent_path(), made);
      if (is_there && access(path.parent_path().c_str(), W_OK) != 0 && errno != ENOENT) return std::nullopt;
      Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
      if (file.number() < 0 && errno == ENOENT && removals++ < max_removals) continue;
      const auto attempt = file.number() < 0 ? Attempt::impossible : try_lock(file, path);
      if (attempt == Attempt::locked) {
        write_holder(file, self);
        return file;
      }
      if (attempt == Attempt::impossible) {
        warn_once(path.parent_path(), std::strerror(errno));
        return std::nullopt;
      }
      if (attempt == Attempt::replaced) continue;
      const auto holder = read_holder(file);
      const bool is_let_in = holder.part == self.part && manner.others == OtherRanks::may_hold;
      if (is_same_run(holder, self) && is_let_in) return std::nullopt;
      if (is_same_run(holder, self)) refuse_in_job(path, holder);
      if (is_over && !is_superseded(holder, self)) refuse(path, holder);
      std::error_code ignored;
      if (is_over) fs::remove(path, ignored);  // a lock that outlived its host: the next attempt makes a new file
      // A rank of this run that has not written its name yet does so within the first pause.
      if (pause == (is_unknown(holder) ? 20ms : 10ms) && !is_over)
        log::info(path.parent_path().string(), " is in use: ", to_string(holder), "; waiting for up to ",
                  manner.patience.count() / 1000.0, " s");
      std::this_thread::sleep_for(pause);
    }
  }

  Descriptor file_;
  fs::path path_;
  std::vector<fs::path> made_;
};

FolderLock::FolderLock(const fs::path& folder, const LockHolder& self, std::chrono::milliseconds patience,
                       OtherRanks others)
    : file_(LockedFile::of(one_path_of(folder), self, patience, others)) {}

}  // namespace hortator::runtime
