#include "formats/file/raw_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <hortator/error.hpp>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::formats {
namespace {

// Systems transfer at most 2 GiB a call, and sometimes less than was asked for.
constexpr std::size_t max_bytes_per_call = std::size_t{1} << 30;
constexpr auto temporary_name = ".hortator-XXXXXX";

/// Repeats a call that a signal has interrupted, such as the scheduler's warning before the time limit.
template <typename Call>
int uninterrupted(const Call& call) {
  int result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int open(const std::filesystem::path& path, int flags, std::chrono::milliseconds patience = {}) {
  using namespace std::chrono_literals;
  constexpr mode_t everybody = 0666;  // minus the user's umask
  const auto begin = std::chrono::steady_clock::now();
  const auto open_once = [&] { return ::open(path.c_str(), flags | O_CLOEXEC, everybody); };
  int descriptor = uninterrupted(open_once);
  while (descriptor < 0 && (errno == ENOENT || errno == ESTALE) &&
         std::chrono::steady_clock::now() - begin < patience) {
    std::this_thread::sleep_for(20ms);
    descriptor = uninterrupted(open_once);
  }
  if (descriptor < 0) throw_system_error(text::concat((flags & O_CREAT) != 0 ? "create " : "open ", path), errno);
  return descriptor;
}

/// Calls `move(done, bytes)`, which returns what read(2) and write(2) return, until all bytes are moved. Returns false
/// at the end of the file.
template <typename Move>
bool move_all(std::size_t bytes, const std::string& task, const Move& move) {
  for (std::size_t done = 0; done < bytes;) {
    const auto moved = move(done, std::min(bytes - done, max_bytes_per_call));
    if (moved == 0) return false;
    if (moved < 0 && errno != EINTR) throw_system_error(task, errno);
    if (moved > 0) done += static_cast<std::size_t>(moved);
  }
  return true;
}

}  // namespace

RawFile RawFile::create(const std::filesystem::path& path, std::chrono::milliseconds patience) {
  return {path, open(path, O_WRONLY | O_CREAT | O_EXCL, patience)};
}
RawFile RawFile::open_for_writing(const std::filesystem::path& path, std::chrono::milliseconds patience) {
  return {path, open(path, O_WRONLY, patience)};
}
RawFile RawFile::open_for_reading(const std::filesystem::path& path, std::chrono::milliseconds patience) {
  return {path, open(path, O_RDONLY, patience)};
}

RawFile RawFile::open_passed_on(const std::filesystem::path& path) { return {path, open(path, O_RDWR)}; }

RawFile RawFile::create_to_pass_on(const std::filesystem::path& folder) {
  auto name = (folder / temporary_name).string();
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) throw_system_error(text::concat("create a file in ", folder), errno);
  return {name, descriptor};
}

RawFile RawFile::create_unnamed(const std::filesystem::path& folder) {
  constexpr mode_t owner = 0600;
  const int descriptor = ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, owner);
  if (descriptor >= 0) return {folder / temporary_name, descriptor};
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
    throw_system_error(text::concat("create a file in ", folder), errno);
  // File systems without O_TMPFILE, such as NFS.
  auto file = create_to_pass_on(folder);
  ::unlink(file.path_.c_str());
  return file;
}

RawFile::RawFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

RawFile::~RawFile() {
  // Writers have called close() for its errors; on this path another error is already being thrown.
  if (descriptor_ >= 0) ::close(descriptor_);
}

RawFile::RawFile(RawFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

RawFile& RawFile::operator=(RawFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void RawFile::write_at(std::int64_t offset, const void* data, std::size_t bytes) const {
  const auto* from = static_cast<const std::byte*>(data);
  move_all(bytes, text::concat("write ", path_), [&](std::size_t done, std::size_t count) {
    return ::pwrite(descriptor_, from + done, count, offset + static_cast<off_t>(done));
  });
}

void RawFile::read_at(std::int64_t offset, void* data, std::size_t bytes) const {
  auto* to = static_cast<std::byte*>(data);
  const bool complete = move_all(bytes, text::concat("read ", path_), [&](std::size_t done, std::size_t count) {
    return ::pread(descriptor_, to + done, count, offset + static_cast<off_t>(done));
  });
  if (!complete)
    throw FileError({.what = text::concat("Cannot read ", path_, ": it ends too early"), .why = "it is damaged"});
}

std::uint64_t RawFile::bytes() const {
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0) throw_system_error(text::concat("get the size of ", path_), errno);
  return static_cast<std::uint64_t>(facts.st_size);
}

void RawFile::resize(std::uint64_t bytes) const {
  if (uninterrupted([&] { return ::ftruncate(descriptor_, static_cast<off_t>(bytes)); }) != 0)
    throw_system_error(text::concat("resize ", path_), errno);
}

// Reserves disk space. Returns false if the file system cannot, such as NFS before 4.2.
bool RawFile::allocate(std::uint64_t bytes) const {
  if (bytes == 0) return true;
  if (uninterrupted([&] { return ::fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes)); }) == 0) return true;
  if (errno == EOPNOTSUPP) return false;
  throw_system_error(text::concat("reserve ", bytes, " bytes for ", path_), errno);
}

void RawFile::reserve(std::uint64_t bytes) const {
  if (!allocate(bytes)) resize(bytes);
}

void RawFile::occupy(std::uint64_t bytes) const {
  if (allocate(bytes)) return;
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20));
  for (std::uint64_t done = 0; done < bytes; done += zeros.size())
    write_at(static_cast<std::int64_t>(done), zeros.data(), std::min<std::uint64_t>(zeros.size(), bytes - done));
  sync();  // until then the disk may still turn out to be full
}

void RawFile::start_writing(std::int64_t offset, std::size_t bytes) const noexcept {
#ifdef SYNC_FILE_RANGE_WRITE
  ::sync_file_range(descriptor_, offset, static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
#endif
}

void RawFile::expect_front_to_back() const noexcept { ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL); }

void RawFile::forget_cached() const noexcept { ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED); }

void RawFile::sync() const {
  if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0)
    throw_system_error(text::concat("flush ", path_), errno);
}

void RawFile::close() {
  // Linux closes a file also where a signal interrupts that.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR)
    throw_system_error(text::concat("close ", path_), errno);
}

std::string read_text(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const auto file = RawFile::open_for_reading(path);
  const auto bytes = file.bytes();
  if (bytes > max_bytes) {
    throw FileError({.what = text::concat("Cannot read ", path, ": it has ", bytes, " bytes"),
                     .why = text::concat("expected at most ", max_bytes)});
  }
  std::string contents(bytes, '\0');
  file.read_at(0, contents.data(), contents.size());
  return contents;
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_system_error(text::concat("create the folder ", folder), error.value());
}

void make_folder_durably(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> missing;
  auto one = std::filesystem::absolute(folder);
  for (; one.has_relative_path() && !std::filesystem::exists(one); one = one.parent_path()) missing.push_back(one);
  if (!missing.empty()) make_folder(folder);
  for (const auto& made : missing) sync_folder(made.parent_path());
}

void rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) throw_system_error(text::concat("rename ", from, " to ", to), errno);
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder, O_RDONLY | O_DIRECTORY);
  const int error = uninterrupted([&] { return ::fsync(descriptor); }) == 0 ? 0 : errno;
  ::close(descriptor);
  // EINVAL: this file system cannot flush folders; nothing more can be done.
  if (error != 0 && error != EINVAL) throw_system_error(text::concat("flush the folder ", folder), error);
}

std::chrono::milliseconds visible_within() {
  constexpr std::chrono::seconds usual{10};
  const auto text = core::variable("HORTATOR_FILE_PATIENCE");
  if (!text || text->empty()) return usual;
  if (const auto parsed = units::parse_duration(*text)) return *parsed;
  throw UsageError({.what = text::concat("HORTATOR_FILE_PATIENCE=", *text, " is not a time"),
                    .why = "it is how long a rank waits for a file that another node has made",
                    .hint = "write a number with its unit: 500ms, 30s, 1min"});
}

}  // namespace hortator::formats
