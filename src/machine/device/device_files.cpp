
#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "machine/device/device.hpp"

namespace hortator::machine {
namespace {

// "nvidia0", "nvidia12"; not "nvidiactl"
bool is_device_name(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

// With a device cgroup the file exists, but opening it fails.
bool can_open(const std::filesystem::path& file) {
  const int opened = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) return false;
  close(opened);
  return true;
}

}  // namespace

DeviceFiles device_files(const std::filesystem::path& folder) {
  const auto& kind = accelerator_kind() != nullptr ? *accelerator_kind() : known_kinds().front();
  const auto files = folder / kind.file_prefix;
  DeviceFiles count;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(files.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_device_name(entry->path().filename().string(), files.filename().string())) continue;
    ++count.all;
    if (can_open(entry->path())) ++count.openable;
  }
  return count;
}

}  // namespace hortator::machine
