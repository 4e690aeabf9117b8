#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <functional>
#include <system_error>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/environment.hpp"
#include "tools/doctor/folder.hpp"

namespace hortator::tools::doctor {
namespace {

namespace fs = std::filesystem;

/// Two file names in a folder that no other process uses; the files are removed at the end.
class Trial {
 public:
  explicit Trial(const fs::path& folder)
      : one(folder / text::concat(".hortator-doctor-", mpi::host_name(), '-', getpid(), "-1")),
        other(folder / text::concat(".hortator-doctor-", mpi::host_name(), '-', getpid(), "-2")) {}
  ~Trial() {
    std::error_code ignored;
    fs::remove(one, ignored);
    fs::remove(other, ignored);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  const fs::path one;
  const fs::path other;
};

std::string error_of(const std::function<void()>& attempt) {
  try {
    attempt();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

void require(bool worked) {
  if (!worked) throw std::system_error(errno, std::generic_category());
}

void write(const fs::path& file) {
  const auto out = formats::RawFile::create(file);
  out.write_at(0, "hortator", 8);
}

void replace(const Trial& trial) {
  write(trial.other);
  formats::rename(trial.other, trial.one);
  if (formats::read_text(trial.one, 64) != "hortator" || fs::exists(trial.other))
    throw std::runtime_error("the file was not replaced");
}

void sync(const Trial& trial) {
  const auto file = formats::RawFile::open_for_writing(trial.one);
  file.write_at(0, "HORTATOR", 8);
  file.sync();
  formats::sync_folder(trial.one.parent_path());
}

void lock_whole(const fs::path& file) {
  const auto opened = formats::RawFile::open_for_writing(file);
  require(::flock(opened.descriptor(), LOCK_EX | LOCK_NB) == 0);
  require(::flock(opened.descriptor(), LOCK_UN) == 0);
}

void lock_part(const fs::path& file) {
  const auto opened = formats::RawFile::open_for_writing(file);
  struct flock part {};
  part.l_type = F_WRLCK;
  part.l_whence = SEEK_SET;
  part.l_len = 4;
  require(::fcntl(opened.descriptor(), F_SETLK, &part) == 0);
}

}  // namespace

std::string file_system_of(const fs::path& path, const std::string& mountinfo) {
  std::string type;
  std::size_t longest = 0;
  for (const auto& line : text::split(mountinfo, '\n')) {
    const auto fields = text::split(line, ' ');
    const auto dash = line.find(" - ");
    if (fields.size() < 5 || dash == std::string::npos) continue;
    const auto& mounted = fields[4];
    const auto inside = mounted == "/" ? "/" : mounted + "/";
    if (!(path.string() + "/").starts_with(inside) || mounted.size() < longest) continue;
    longest = mounted.size();
    type = text::split(line.substr(dash + 3), ' ').front();
  }
  return type;
}

FolderFacts inspect_folder(const fs::path& asked) {
  std::error_code error;
  const auto path = fs::canonical(asked, error);
  if (error) return {.path = asked.string(), .writing = error.message()};
  FolderFacts folder{.path = path.string(),
                     .file_system = file_system_of(path, core::read_whole("/proc/self/mountinfo").value_or(""))};
  folder.free_bytes = fs::space(path, error).available;
  const Trial trial(path);
  folder.writing = error_of([&] { write(trial.one); });
  if (!folder.writing.empty()) return folder;
  folder.renaming = error_of([&] { replace(trial); });
  folder.syncing = error_of([&] { sync(trial); });
  folder.flock = error_of([&] { lock_whole(trial.one); });
  folder.fcntl = error_of([&] { lock_part(trial.one); });
  return folder;
}

}  // namespace hortator::tools::doctor
