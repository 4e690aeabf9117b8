#include "core/log.hpp"

#include <strings.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <mutex>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/log_everywhere.hpp"

namespace hortator::log {
namespace {

// A process has one standard error, so who speaks on it is a fact of the process too.
struct Speaker {
  std::mutex mutex;
  int rank = 0;
  std::string prefix;
  std::function<void()> make_way;
};

Speaker& speaker() {
  static Speaker instance;
  return instance;
}

// One write a line: lines of several ranks may interleave, but never within a line.
void write_whole(FILE* stream, const std::string& line) {
  if (speaker().make_way) speaker().make_way();
  std::fwrite(line.data(), 1, line.size(), stream);
  std::fflush(stream);
}

void write_line(std::string_view level, std::string_view line) {
  write_whole(stderr, text::concat(speaker().prefix, level, line, '\n'));
}

// HORTATOR_LOG_LEVEL; a word that is no level is an error where a logger is made.
bool is_any_of(std::initializer_list<const char*> levels) {
  const auto asked = core::variable("HORTATOR_LOG_LEVEL");
  return asked &&
         std::ranges::any_of(levels, [&](const char* level) { return strcasecmp(asked->c_str(), level) == 0; });
}

bool hears_warnings() { return !is_any_of({"error", "critical"}); }
bool hears_info() { return hears_warnings() && !is_any_of({"warning"}); }

}  // namespace

void set_identity(int rank, std::string_view host) {
  const std::scoped_lock lock(speaker().mutex);
  speaker().rank = rank;
  speaker().prefix = text::concat('[', rank, '/', host, "] ");
}

void write_info(std::string_view line) {
  const std::scoped_lock lock(speaker().mutex);
  if (speaker().rank == 0 && hears_info()) write_line("", line);
}

void write_warning(std::string_view line) {
  const std::scoped_lock lock(speaker().mutex);
  if (hears_warnings()) write_line("warning: ", line);
}

void write_everywhere(std::string_view line) {
  const std::scoped_lock lock(speaker().mutex);
  write_line("", line);
}

void write_last_words(std::string_view line) {
  // Whoever holds the lock may be what has failed.
  const std::unique_lock lock(speaker().mutex, std::try_to_lock);
  const auto whole = text::concat(line, '\n');
  if (lock.owns_lock()) {
    write_whole(stderr, whole);
  } else {
    std::fwrite(whole.data(), 1, whole.size(), stderr);
  }
}

void print(std::string_view line) {
  const std::scoped_lock lock(speaker().mutex);
  write_whole(stdout, text::concat(line, '\n'));
}

void set_line_guard(std::function<void()> make_way) {
  const std::scoped_lock lock(speaker().mutex);
  speaker().make_way = std::move(make_way);
}

}  // namespace hortator::log
