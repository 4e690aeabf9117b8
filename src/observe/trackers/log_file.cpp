#include "observe/trackers/log_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::observe {
namespace {

using namespace std::chrono_literals;

constexpr auto max_unseen_time = 100ms;

[[noreturn]] void fail(const std::filesystem::path& path, int code) {
  throw Error({.what = text::concat("Cannot write ", path.string(), ": ", std::strerror(code)),
               .why = "the tracker records the run there",
               .hint = "make room or choose another project.logging_dir"});
}

}  // namespace

LogFile::LogFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code error;
  std::filesystem::create_directories(path_.parent_path(), error);
  if (error) fail(path_, error.value());
  file_.reset(std::fopen(path_.c_str(), "ae"));
  if (!file_) fail(path_, errno);
}

void LogFile::append(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail(path_, errno);
  if (std::chrono::steady_clock::now() - flushed_ > max_unseen_time) flush();
}

void LogFile::flush() {
  if (std::fflush(file_.get()) != 0) fail(path_, errno);
  flushed_ = std::chrono::steady_clock::now();
}

void LogFile::make_durable() {
  flush();
  // Pipes and special files do not support fdatasync.
  if (fdatasync(fileno(file_.get())) != 0 && errno != EINVAL && errno != EROFS) fail(path_, errno);
}

}  // namespace hortator::observe
