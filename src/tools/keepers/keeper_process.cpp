#include "tools/keepers/keeper_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <hortator/error.hpp>
#include <thread>
#include <utility>

#include "core/text/text.hpp"
#include "tools/keepers/kept_folder.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Pipe = std::array<int, 2>;

constexpr int poll_milliseconds = 100;
constexpr auto time_to_give_up = 500ms;  // of a keeper that is late

Pipe make_pipe() {
  Pipe ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error({.what = text::concat("Cannot make a pipe: ", std::strerror(errno))});
  return ends;
}

[[noreturn]] void become(const std::vector<std::string>& command, int input, int output) {
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  replace_child(command);
}

void wait_for_output(const std::vector<KeeperProcess*>& keepers) {
  std::vector<pollfd> ready;
  for (const auto* keeper : keepers) ready.push_back({.fd = keeper->output(), .events = POLLIN, .revents = 0});
  poll(ready.data(), ready.size(), poll_milliseconds);
}

void end_until(KeeperProcess& keeper, Clock::time_point end) noexcept {
  while (!keeper.has_ended() && Clock::now() < end) std::this_thread::sleep_for(5ms);
  keeper.kill();
}

}  // namespace

bool KeeperProcess::has_ended() {
  int status = 0;
  if (process_ <= 0) return true;
  if (waitpid(process_, &status, WNOHANG) == 0) return false;
  was_good_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  process_ = -1;
  return true;
}

void KeeperProcess::start() {
  close_input();
  close_output();
  const auto input = make_pipe();
  const auto output = make_pipe();
  ready_ = 0;
  unread_.clear();
  process_ = fork();
  if (process_ == 0) become(command_.command, input[0], output[1]);
  ::close(input[0]);
  ::close(output[1]);
  input_ = input[1];
  output_ = output[0];
  fcntl(output_, F_SETFL, O_NONBLOCK);
}

void KeeperProcess::read_output() {
  std::array<char, 256> buffer{};
  while (output_ >= 0) {
    const auto got = read(output_, buffer.data(), buffer.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return close_output();
    unread_.append(buffer.data(), static_cast<std::size_t>(got));
    for (auto end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
      take_line(std::string_view(unread_).substr(0, end));
      unread_.erase(0, end + 1);
    }
  }
}

void KeeperProcess::take_line(std::string_view line) { ready_ += line == keeper_is_ready ? 1 : 0; }

void KeeperProcess::close_output() noexcept {
  if (output_ >= 0) ::close(std::exchange(output_, -1));
}

void KeeperProcess::close_input() noexcept {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

void KeeperProcess::kill() noexcept {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
  was_good_ = false;
}

std::vector<KeeperProcess*> start_together(const std::vector<KeeperProcess*>& keepers, std::chrono::milliseconds limit,
                                           const std::function<bool()>& is_asked_to_stop) {
  const auto end = Clock::now() + limit;
  for (auto* keeper : keepers) keeper->start();
  auto pending = keepers;
  const auto is_settled = [](const KeeperProcess* keeper) { return keeper->is_ready() || keeper->output() < 0; };
  while (!pending.empty() && Clock::now() < end && !(is_asked_to_stop && is_asked_to_stop())) {
    wait_for_output(pending);
    for (auto* keeper : pending) keeper->read_output();
    std::erase_if(pending, is_settled);
  }
  std::vector<KeeperProcess*> late;
  for (auto* keeper : keepers) {
    keeper->close_output();
    if (keeper->is_ready()) continue;
    keeper->close_input();
    late.push_back(keeper);
  }
  const auto grace = Clock::now() + time_to_give_up;
  for (auto* keeper : late) end_until(*keeper, grace);
  return late;
}

std::vector<std::string> end_together(std::vector<KeeperProcess>& keepers, std::chrono::milliseconds limit) noexcept {
  const auto end = Clock::now() + limit;
  for (auto& keeper : keepers) keeper.close_input();
  std::vector<std::string> bad;
  for (auto& keeper : keepers) {
    end_until(keeper, end);
    if (!keeper.was_good()) bad.push_back(keeper.where());
  }
  return bad;
}

}  // namespace hortator::tools
