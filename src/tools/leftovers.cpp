#include "tools/leftovers.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "core/environment/process_id.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* claim_file = ".claim";

bool is_own_folder(const fs::path& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

bool is_abandoned(const fs::path& folder) {
  return core::has_ended(text::first_line(core::read_whole(folder / claim_file).value_or("")));
}

}  // namespace

void claim_folder(const fs::path& folder) {
  std::error_code ignored;
  const auto own = core::process_id();
  if (own.empty() || !fs::create_directory(folder, ignored)) return;
  core::write_whole(folder / claim_file, folder / (std::string(claim_file) + ".new"), own + '\n');
}

void remove_leftovers(const fs::path& below, const std::string& tool) {
  std::error_code error;
  std::vector<fs::path> abandoned;
  for (fs::directory_iterator entry(below, error), end; !error && entry != end; entry.increment(error)) {
    const auto& path = entry->path();
    if (path.filename().string().starts_with(tool + "-") && is_own_folder(path) && is_abandoned(path))
      abandoned.push_back(path);
  }
  for (const auto& path : abandoned) fs::remove_all(path, error);
}

}  // namespace hortator::tools
