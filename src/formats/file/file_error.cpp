#include "formats/file/file_error.hpp"

#include <cerrno>
#include <string>
#include <system_error>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

std::string hint_for(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "free space or raise the limit (df, quota, ulimit -f), or choose another folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder that this user may write to";
    case ENOENT:
      return "check the path; on several nodes its folder must be on a file system that all of them share";
    default:
      return "";
  }
}

}  // namespace

void throw_system_error(std::string_view task, int code, std::source_location where) {
  throw FileError(
      {.what = text::concat("Cannot ", task, ": ", std::generic_category().message(code)), .hint = hint_for(code)},
      where);
}

}  // namespace hortator::formats
