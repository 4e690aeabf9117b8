#include "tools/launch/checkpoint_command.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <hortator/error.hpp>
#include <iostream>
#include <iterator>
#include <thread>

#include "core/signal_name.hpp"
#include "core/text/text.hpp"
#include "launch/command_arguments.hpp"
#include "tools/launch/held_signals.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

// In a process group of its own: Ctrl-C asks the ranks to stop, and does not cut a copy off.
[[noreturn]] void become(const std::vector<std::string>& command) {
  setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  replace_child(command);
}

std::string end_of(int status) {
  if (WIFEXITED(status)) return text::concat("exit code ", WEXITSTATUS(status));
  return text::concat("signal ", WTERMSIG(status), " (", core::signal_name(WTERMSIG(status)), ')');
}

void complain(const std::string& text) { std::cerr << "hortator: --on-checkpoint: " << text << std::endl; }

}  // namespace

CheckpointCommand::CheckpointCommand(std::vector<std::string> arguments)
    : arguments_(std::move(arguments)), note_(fs::absolute(text::concat(".hortator-checkpoints-", getpid()))) {
  const int file = ::open(note_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) {
    throw Error({.what = text::concat("Cannot make ", note_.string(), ": ", std::strerror(errno)),
                 .why = "the program reports complete checkpoints there, for --on-checkpoint",
                 .hint = "start the launch in a folder that you can write to"});
  }
  ::close(file);
}

CheckpointCommand::~CheckpointCommand() {
  std::error_code ignored;
  fs::remove(note_, ignored);
}

// A part of a name has no zero byte yet.
void CheckpointCommand::read_note() {
  std::ifstream in(note_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(read_bytes_));
  const std::string text(std::istreambuf_iterator<char>(in), {});
  for (std::size_t begin = 0, end = 0; (end = text.find('\0', begin)) != std::string::npos; begin = end + 1) {
    waiting_.push_back(text.substr(begin, end - begin));
    read_bytes_ += end + 1 - begin;
  }
}

void CheckpointCommand::report_end() {
  int status = 0;
  if (process_ < 0 || waitpid(process_, &status, WNOHANG) != process_) return;
  process_ = -1;
  if (status != 0) complain(text::concat("the command ended with ", end_of(status), " for ", folder_));
}

void CheckpointCommand::start_next() {
  while (process_ < 0 && !waiting_.empty()) {
    folder_ = std::move(waiting_.front());
    waiting_.pop_front();
    std::error_code unknown;
    if (!fs::is_directory(folder_, unknown)) {
      complain(text::concat(folder_, " has been removed or replaced before its turn came: keep more checkpoints"));
      continue;
    }
    const auto command = launching::with_file(arguments_, folder_);
    process_ = fork();
    if (process_ == 0) become(command);
    if (process_ < 0) complain(text::concat("cannot start a process for ", folder_, ": ", std::strerror(errno)));
  }
}

void CheckpointCommand::advance() {
  report_end();
  read_note();
  start_next();
}

void CheckpointCommand::give_up(int signal) {
  complain(text::concat(
      core::signal_name(signal), " ends the command for ", folder_,
      waiting_.empty()
          ? ""
          : text::concat(", and ", text::count(static_cast<long long>(waiting_.size()), "later checkpoint"),
                         " get none")));
  end_process();
}

// A command that ignores SIGTERM must not keep the job.
void CheckpointCommand::end_process() {
  constexpr int polls = 100;
  constexpr std::chrono::milliseconds between(50);
  kill(-process_, SIGTERM);
  for (int i = 0; i < polls && waitpid(process_, nullptr, WNOHANG) == 0; ++i) std::this_thread::sleep_for(between);
  if (kill(-process_, SIGKILL) == 0) waitpid(process_, nullptr, 0);
  process_ = -1;
}

void CheckpointCommand::finish() {
  constexpr double poll_seconds = 0.05;
  const HeldSignals signals;
  for (advance(); process_ > 0; advance()) {
    if (const auto signal = signals.wait(poll_seconds)) return give_up(*signal);
  }
}

}  // namespace hortator::tools
