#include "core/passing_folder.hpp"

#include <cstdlib>
#include <hortator/error.hpp>
#include <system_error>

#include "core/text/text.hpp"

namespace hortator::core {

namespace fs = std::filesystem;

PassingFolder::PassingFolder(const fs::path& below, const std::string& name) {
  auto path = (fs::absolute(below) / (name + "-XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr)
    throw Error({.what = text::concat("A folder for passing files could not be made in ", text::quote(below.string())),
                 .hint = "work in a folder in which you may write, or set TMPDIR to one"});
  path_ = path;
}

PassingFolder::~PassingFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace hortator::core
