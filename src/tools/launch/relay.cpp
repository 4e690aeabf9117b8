#include "tools/launch/relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <hortator/error.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

// How long the beginning of a possible report may be held back.
constexpr int max_wait_ms = 100;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const auto written = write(STDERR_FILENO, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    if (written >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return;  // no process can read it
    pollfd reader = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    poll(&reader, 1, -1);
  }
}

void close_end(int& end) {
  if (end >= 0) close(std::exchange(end, -1));
}

}  // namespace

Relay::Relay(launching::LauncherOutput& output) : output_(output) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error({.what = text::concat("Cannot make a pipe: ", std::strerror(errno))});
  outlet_ = ends[0];
  inlet_ = ends[1];
}

Relay::~Relay() {
  finish();
  close_end(outlet_);
}

void Relay::start() {
  close_end(inlet_);
  thread_ = std::jthread([this](const std::stop_token& ended) { pass_on(ended); });
}

void Relay::finish() {
  close_end(inlet_);
  thread_ = {};  // requests the stop, and joins
}

void Relay::pass_on(const std::stop_token& ended) {
  std::array<char, 4096> buffer{};
  while (true) {
    pollfd ready = {.fd = outlet_, .events = POLLIN, .revents = 0};
    const int count = poll(&ready, 1, max_wait_ms);
    if (count == 0) {
      write_all(output_.release());
      if (ended.stop_requested()) break;
      continue;
    }
    const auto got = count < 0 ? -1 : read(outlet_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    write_all(output_.take({buffer.data(), static_cast<std::size_t>(got)}));
  }
  write_all(output_.finish());
}

}  // namespace hortator::tools
