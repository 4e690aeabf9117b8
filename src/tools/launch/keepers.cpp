#include "tools/launch/keepers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <hortator/error.hpp>
#include <iostream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/text/text.hpp"
#include "core/time.hpp"
#include "core/whole_file.hpp"
#include "tools/launch/kept_folder.hpp"
#include "tools/launch/launch_environment.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto time_to_start = 30s;  // srun and ssh may be slow
constexpr auto time_to_end = 10s;

using Pipe = std::array<int, 2>;

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

// Waits for more text. False at its end, after an error, and when the time is over.
bool read_more(int from, Clock::time_point end, std::string& text) {
  std::array<char, 256> buffer{};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd ready = {.fd = from, .events = POLLIN, .revents = 0};
    const int count = left <= 0 ? 0 : poll(&ready, 1, static_cast<int>(left));
    const auto got = count > 0 ? read(from, buffer.data(), buffer.size()) : ssize_t{count};
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0;
  }
}

// Whether that many keepers have said that they are ready before the time is over. A remote shell may print greetings.
bool are_ready(int from, int count) {
  const auto end = Clock::now() + time_to_start;
  std::string text;
  while (count > 0) {
    const auto line_end = text.find('\n');
    if (line_end == std::string::npos) {
      if (!read_more(from, end, text)) return false;
      continue;
    }
    if (std::string_view(text).substr(0, line_end) == keeper_is_ready) --count;
    text.erase(0, line_end + 1);
  }
  return true;
}

std::string this_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::vector<std::string> hosts_of(const launching::LaunchRequest& request) {
  if (!request.hosts.empty()) return launching::hosts_of_list(request.hosts);
  if (request.hostfile.empty()) return hosts_at_hand();
  const auto content = core::read_whole(request.hostfile);
  if (!content) throw UsageError({.what = "--hostfile: " + text::quote(request.hostfile) + " cannot be read"});
  return launching::hosts_of_file(*content);
}

}  // namespace

KeeperPlan plan_keepers(const launching::LaunchRequest& request, const launching::LaunchEnvironment& environment,
                        const std::filesystem::path& parent) {
  const auto id = text::concat(kept_prefix(), getpid(), '-', static_cast<long long>(core::unix_time() * 1e3));
  KeeperPlan plan{.folder = std::filesystem::absolute(parent) / id};
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  plan.commands = launching::keeper_commands(request, environment,
                                             {.hosts = hosts_of(request),
                                              .nodes = nodes_at_hand(),
                                              .this_host = this_host(),
                                              .remote_shell = remote_shell(),
                                              .keeper = {self, "keep", plan.folder.string()}});
  return plan;
}

Keepers::Keepers(KeeperPlan plan) : folder_(std::move(plan.folder)) {
  for (auto& command : plan.commands) running_.push_back({.command = std::move(command)});
  try {
    for (auto& keeper : running_) start(keeper);
  } catch (...) {
    for (auto& keeper : running_) end(keeper);
    throw;
  }
}

Keepers::~Keepers() {
  for (auto& keeper : running_) {
    if (keeper.input >= 0) ::close(std::exchange(keeper.input, -1));
  }
  for (auto& keeper : running_) end(keeper);
}

void Keepers::start(Running& keeper) {
  const auto input = make_pipe();
  const auto output = make_pipe();
  keeper.process = fork();
  if (keeper.process == 0) become(keeper.command.command, input[0], output[1]);
  ::close(input[0]);
  ::close(output[1]);
  keeper.input = input[1];
  const bool is_ready = keeper.process > 0 && are_ready(output[0], keeper.command.keepers);
  ::close(output[0]);
  if (is_ready) return;
  end(keeper);
  throw Error({.what = text::concat("No keeper of checkpoints in memory could be started on ", keeper.command.where),
               .why = "it makes the folder for them there, and removes it at the end",
               .hint = "see the message above; leave --memory-checkpoint out to resume from the disk only"});
}

bool Keepers::has_ended(const Running& keeper) {
  return keeper.process <= 0 || waitpid(keeper.process, nullptr, WNOHANG) != 0;
}

void Keepers::end(Running& keeper) noexcept {
  if (keeper.input >= 0) ::close(std::exchange(keeper.input, -1));
  if (keeper.process <= 0) return;
  const auto limit = Clock::now() + time_to_end;
  bool is_over = false;
  while (!(is_over = has_ended(keeper)) && Clock::now() < limit) std::this_thread::sleep_for(5ms);
  if (!is_over) {
    kill(keeper.process, SIGKILL);
    waitpid(keeper.process, nullptr, 0);
  }
  keeper.process = -1;
}

std::int64_t Keepers::newest_checkpoint() const {
  constexpr std::string_view stem = "checkpoint_";
  std::int64_t newest = -1;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = entry->path().filename().string();
    long long number = 0;
    if (name.starts_with(stem) && text::parse_integer(std::string_view(name).substr(stem.size()), number))
      newest = std::max<std::int64_t>(newest, number);
  }
  return newest;
}

std::vector<std::string> Keepers::renew() {
  std::vector<std::string> unreachable;
  for (auto& keeper : running_) {
    if (!has_ended(keeper)) continue;
    keeper.process = -1;
    end(keeper);
    try {
      start(keeper);
    } catch (const Error& error) {
      std::cerr << "hortator: " << error.what() << std::endl;
      unreachable.push_back(keeper.command.where);
    }
  }
  std::erase_if(running_, [](const Running& keeper) { return keeper.process <= 0; });
  return unreachable;
}

}  // namespace hortator::tools
