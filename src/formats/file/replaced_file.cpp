#include "formats/file/replaced_file.hpp"

#include <system_error>

#include "formats/file/replacement.hpp"

namespace hortator::formats {

void replace_file(const std::filesystem::path& path, const std::function<void(const RawFile&)>& write) {
  const auto target = std::filesystem::absolute(path);
  const auto staged = target.string() + ".new-" + replacement_id();
  try {
    auto file = RawFile::create(staged);
    write(file);
    file.sync();
    file.close();
    formats::rename(staged, target);
    sync_folder(target.parent_path());
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(staged, ignored);
    throw;
  }
}

}  // namespace hortator::formats
