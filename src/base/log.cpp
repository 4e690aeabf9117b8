#include "base/log.hpp"

#include <cstdio>
#include <mutex>

namespace hortator::log {
namespace {

// A process has one standard error, so who speaks on it is a fact of the process too.
struct Speaker {
  std::mutex mutex;
  int rank = 0;
  std::string prefix;
};

Speaker& speaker() {
  static Speaker instance;
  return instance;
}

// One write a line: lines of several ranks may interleave, but never within a line.
void write_line(std::string_view level, std::string_view line) {
  std::string whole = text::concat(speaker().prefix, level, line, '\n');
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

}  // namespace

void set_identity(int rank, std::string_view host) {
  const std::scoped_lock lock(speaker().mutex);
  speaker().rank = rank;
  speaker().prefix = text::concat('[', rank, '/', host, "] ");
}

void write_info(std::string_view line) {
  const std::scoped_lock lock(speaker().mutex);
  if (speaker().rank == 0) write_line("", line);
}

void write_warning(std::string_view line) {
  const std::scoped_lock lock(speaker().mutex);
  write_line("warning: ", line);
}

}  // namespace hortator::log
