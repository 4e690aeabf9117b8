#include "tools/leftovers.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "runtime/watchdog/process.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* claim_file = ".claim";

// Numbers of processes mean something on one machine, until it starts again, and within one container.
std::string place_of_processes() {
  std::error_code none;
  const auto boot = core::read_whole("/proc/sys/kernel/random/boot_id").value_or("");
  const auto numbers = fs::read_symlink("/proc/self/ns/pid", none).string();
  return boot.empty() || numbers.empty() ? "" : text::concat(text::first_line(boot), ' ', numbers);
}

bool is_own_folder(const fs::path& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid();
}

bool is_abandoned(const fs::path& folder) {
  const auto lines = text::split(core::read_whole(folder / claim_file).value_or(""), '\n');
  long long process = 0;
  long long start = 0;
  if (lines.size() < 3 || lines[0].empty() || lines[0] != place_of_processes()) return false;
  if (!text::parse_integer(lines[1], process) || !text::parse_integer(lines[2], start)) return false;
  return runtime::life_of(process, static_cast<std::uint64_t>(start)) == runtime::Life::vanished;
}

}  // namespace

void claim_folder(const fs::path& folder) {
  std::error_code none;
  const auto place = place_of_processes();
  const auto self = runtime::process_facts(getpid());
  if (place.empty() || !self || !fs::create_directory(folder, none)) return;
  core::write_whole(folder / claim_file, folder / (std::string(claim_file) + ".new"),
                    text::concat(place, '\n', getpid(), '\n', self->start, '\n'));
}

void remove_leftovers(const fs::path& below, const std::string& tool) {
  std::error_code none;
  std::vector<fs::path> abandoned;
  for (fs::directory_iterator entry(below, none), end; !none && entry != end; entry.increment(none)) {
    const auto& path = entry->path();
    if (path.filename().string().starts_with(tool + "-") && is_own_folder(path) && is_abandoned(path))
      abandoned.push_back(path);
  }
  for (const auto& path : abandoned) fs::remove_all(path, none);
}

}  // namespace hortator::tools
