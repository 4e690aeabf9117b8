#include "tools/written_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::tools {

void write_file(const std::filesystem::path& file, std::string_view content) {
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << content;
  out.close();
  if (out) return;
  throw Error({.what = text::concat(text::quote(file.string()), " cannot be written"),
               .why = errno != 0 ? std::strerror(errno) : "",
               .hint = "choose a folder that you may write to and that has free space"});
}

}  // namespace hortator::tools
