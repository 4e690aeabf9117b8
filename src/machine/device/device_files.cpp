#include "machine/device/device_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace hortator::machine {
namespace {

// "nvidia0", "nvidia12"; not "nvidiactl"
bool is_device_name(std::string_view name) {
  constexpr std::string_view prefix = "nvidia";
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
  return std::ranges::all_of(name.substr(prefix.size()), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// With a device cgroup the file exists, but opening it fails.
bool can_open(const std::filesystem::path& file) {
  const int opened = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) return false;
  close(opened);
  return true;
}

}  // namespace

int openable_devices(const std::filesystem::path& folder) {
  int count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_device_name(entry->path().filename().string()) && can_open(entry->path())) ++count;
  }
  return count;
}

}  // namespace hortator::machine
