#include "observe/trackers/log_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <hortator/error.hpp>
#include <string>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::observe {
namespace {

using namespace std::chrono_literals;

constexpr auto max_unseen_time = 100ms;

[[noreturn]] void fail(const std::filesystem::path& path, int code) {
  throw Error({.what = text::concat("Cannot write ", path.string(), ": ", std::strerror(code)),
               .why = "the tracker records the run there",
               .hint = "make room or choose another project.logging_dir"});
}

namespace fs = std::filesystem;

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

void FileTracker::rewind(std::int64_t last_step) {
  start_.last_step = last_step;
  file_.reset();
}

void FileTracker::flush() {
  if (file_) file_->make_durable();
}

std::string content_of(const fs::path& file) {
  std::error_code none;
  if (!fs::exists(file, none) && !none) return "";
  const auto content = core::read_whole(file);
  if (!content) throw Error({.what = "Cannot read " + file.string(), .why = "the resumed run continues its log there"});
  return *content;
}

void replace_log(const fs::path& file, const fs::path& aside, std::string_view content) {
  if (!core::write_whole(file, aside, content))
    throw Error({.what = "Cannot write " + aside.string(), .why = "the resumed run continues its log there"});
}

void cut_rows(const fs::path& file, FirstRow first, const StepOf& step_of, std::int64_t last_step) {
  const auto content = content_of(file);
  std::string kept;
  kept.reserve(content.size());
  for (std::size_t begin = 0, end = 0; (end = content.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto row = std::string_view(content).substr(begin, end - begin);
    const auto step = step_of(row);
    const bool is_heading = begin == 0 && first == FirstRow::heading;
    if (is_heading || (step && *step <= last_step)) kept.append(row).append("\n");
  }
  if (kept == content) return;
  // Usually only rows at the end are removed, so that truncating is enough.
  if (content.starts_with(kept)) return fs::resize_file(file, kept.size());
  replace_log(file, file.string() + ".new", kept);
}

void put_aside(const fs::path& file) {
  std::error_code none;
  if (fs::exists(file, none)) fs::rename(file, file.string() + ".old");
}

}  // namespace hortator::observe
