#include "runtime/identity/own_command.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <hortator/error.hpp>
#include <string_view>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "runtime/identity/launcher.hpp"

namespace hortator::runtime {
namespace {

namespace fs = std::filesystem;

// What concerns one run or one rank of it.
constexpr std::array<std::string_view, 11> of_this_run = {
    "HORTATOR_RUN_NOTE=", "HORTATOR_CHECKPOINT_NOTE=",  "HORTATOR_KEPT_MEMORY=",    "HORTATOR_STOPPED_CODE=",
    "HORTATOR_MEASURE=",  "HORTATOR_MEMORY_REPORT=",    "HORTATOR_LAUNCH_CALL=",    "HORTATOR_PARALLEL=",
    "HORTATOR_RUN_DIR=",  "HORTATOR_RECORD_OPERATORS=", "HORTATOR_MEASURE_UPDATES="};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const auto& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// How the child starts: with all signals, and its output in a file.
class SpawnSettings {
 public:
  explicit SpawnSettings(const Output& output) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
    redirect(STDOUT_FILENO, output.text);
    redirect(STDERR_FILENO, output.errors);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  void redirect(int stream, const fs::path& file) {
    if (file.empty()) return;
    posix_spawn_file_actions_addopen(&actions_, stream, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  }

  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

std::vector<std::string> own_arguments() {
  auto text = text::split(core::read_whole("/proc/self/cmdline").value_or(""), '\0');
  if (!text.empty()) text.pop_back();  // each argument is followed by a zero byte
  if (text.empty()) throw Error({.what = "The command line of this process cannot be read from /proc/self/cmdline"});
  text.front() = fs::read_symlink("/proc/self/exe").string();
  return text;
}

std::string hortator_command() {
  Dl_info info{};
  std::vector<fs::path> files = {fs::read_symlink("/proc/self/exe")};
  if (dladdr(reinterpret_cast<const void*>(&hortator_command), &info) != 0 && info.dli_fname != nullptr)
    files.emplace_back(fs::absolute(info.dli_fname));
  for (const auto& file : files) {
    const auto beside = file.parent_path().parent_path() / "bin" / "hortator";
    if (access(beside.c_str(), X_OK) == 0) return beside.string();
  }
  return "hortator";
}

int run_to_end(const std::vector<std::string>& command, const std::vector<std::string>& variables,
               const Output& output) {
  const auto arguments = pointers_to(command);
  const auto environment = pointers_to(variables);
  const SpawnSettings settings(output);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, arguments.front(), settings.actions(), settings.attributes(),
                                   arguments.data(), environment.data());
  if (problem != 0) {
    throw Error({.what = text::concat("`", command.front(), "` could not be started: ", std::strerror(problem)),
                 .hint = "put the folder of the command `hortator` on PATH"});
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error({.what = text::concat("`", command.front(), "` was lost: ", std::strerror(errno))});
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  return variables;
}

std::vector<std::string> environment_outside_run() {
  auto variables = own_environment();
  std::erase_if(variables, [](const std::string& one) {
    return is_of_launcher(one) || std::ranges::any_of(of_this_run, [&](auto name) { return one.starts_with(name); });
  });
  return variables;
}

}  // namespace hortator::runtime
