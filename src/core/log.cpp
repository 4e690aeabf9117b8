#include "core/log.hpp"

#include <strings.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <mutex>
#include <utility>

#include "core/environment/environment.hpp"

namespace hortator::log {
namespace {

// Global, because a process has one standard error.
struct LogOutput {
  std::mutex mutex;
  int rank = 0;
  std::string prefix;
  std::function<void()> clear_line;
};

LogOutput& log_output() {
  static LogOutput instance;
  return instance;
}

// One write per line: lines of several ranks may interleave, but characters within a line do not.
void write_whole(FILE* stream, const std::string& line) {
  if (log_output().clear_line) log_output().clear_line();
  std::fwrite(line.data(), 1, line.size(), stream);
  std::fflush(stream);
}

void write_line(std::string_view level, std::string_view line) {
  write_whole(stderr, text::concat(log_output().prefix, level, line, '\n'));
}

// Compares HORTATOR_LOG_LEVEL. An invalid level is reported where a logger is made.
bool is_any_of(std::initializer_list<const char*> levels) {
  const auto asked = core::variable("HORTATOR_LOG_LEVEL");
  return asked &&
         std::ranges::any_of(levels, [&](const char* level) { return strcasecmp(asked->c_str(), level) == 0; });
}

bool shows_warnings() { return !is_any_of({"error", "critical"}); }
bool shows_info() { return shows_warnings() && !is_any_of({"warning"}); }

}  // namespace

void set_identity(int rank, std::string_view host) {
  const std::scoped_lock lock(log_output().mutex);
  log_output().rank = rank;
  log_output().prefix = text::concat('[', rank, '/', host, "] ");
}

void write_info(std::string_view line) {
  const std::scoped_lock lock(log_output().mutex);
  if (log_output().rank == 0 && shows_info()) write_line("", line);
}

void write_warning(std::string_view line) {
  const std::scoped_lock lock(log_output().mutex);
  if (shows_warnings()) write_line("warning: ", line);
}

void write_everywhere(std::string_view line) {
  const std::scoped_lock lock(log_output().mutex);
  write_line("", line);
}

void write_last_line(std::string_view line) {
  // The thread that holds the lock may be the one that failed.
  const std::unique_lock lock(log_output().mutex, std::try_to_lock);
  const auto whole = text::concat(line, '\n');
  if (lock.owns_lock()) {
    write_whole(stderr, whole);
  } else {
    std::fwrite(whole.data(), 1, whole.size(), stderr);
  }
}

void print(std::string_view line) {
  const std::scoped_lock lock(log_output().mutex);
  write_whole(stdout, text::concat(line, '\n'));
}

void set_line_guard(std::function<void()> clear_line) {
  const std::scoped_lock lock(log_output().mutex);
  log_output().clear_line = std::move(clear_line);
}

}  // namespace hortator::log
