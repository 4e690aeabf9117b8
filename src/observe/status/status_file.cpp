#include "observe/status/status_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <string_view>

namespace hortator::observe {
namespace {

int open_in_folder(const std::filesystem::path& file, int flags) {
  std::error_code none;
  std::filesystem::create_directories(file.parent_path(), none);
  return ::open(file.c_str(), flags | O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
}

}  // namespace

StatusFile::~StatusFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool StatusFile::write(const std::string& row) {
  if (descriptor_ < 0) descriptor_ = open_in_folder(path_, 0);
  const auto offset = static_cast<off_t>(row_) * static_cast<off_t>(row.size());
  return descriptor_ >= 0 && ::pwrite(descriptor_, row.data(), row.size(), offset) == std::ssize(row);
}

bool append_row(const std::filesystem::path& file, const std::string& row) {
  const int descriptor = open_in_folder(file, O_APPEND);
  if (descriptor < 0) return false;
  // a row that ends in the middle would take the next one with it
  auto left = std::string_view(row);
  while (!left.empty()) {
    const auto written = ::write(descriptor, left.data(), left.size());
    if (written < 0 && errno != EINTR) break;
    if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::close(descriptor) == 0 && left.empty();
}

std::int64_t resident_bytes() {
  std::int64_t all = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace hortator::observe
