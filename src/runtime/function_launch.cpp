#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <hortator/error.hpp>
#include <hortator/launch.hpp>
#include <hortator/run.hpp>
#include <string>
#include <vector>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "machine/device/device.hpp"
#include "mpi/environment.hpp"
#include "runtime/identity/launcher.hpp"

namespace hortator {
namespace {

namespace fs = std::filesystem;

// The call for which the ranks were started: a program may launch several functions one after the other.
constexpr const char* call_variable = "HORTATOR_LAUNCH_CALL";

std::vector<std::string> own_arguments() {
  auto text = text::split(core::read_whole("/proc/self/cmdline").value_or(""), '\0');
  if (!text.empty()) text.pop_back();  // each word is followed by a zero byte
  if (text.empty()) throw Error({.what = "The command line of this process cannot be read from /proc/self/cmdline"});
  text.front() = fs::read_symlink("/proc/self/exe").string();
  return text;
}

// Beside the library or the program that contains it; otherwise the system searches PATH.
std::string command() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&launch), &info) != 0 && info.dli_fname != nullptr) {
    const auto beside = fs::absolute(info.dli_fname).parent_path().parent_path() / "bin" / "hortator";
    if (access(beside.c_str(), X_OK) == 0) return beside.string();
  }
  return "hortator";
}

void check_may_launch(int ranks) {
  if (ranks < 1)
    throw UsageError({.what = text::concat("A function was to run on ", ranks, " ranks"), .hint = "use 1 or more"});
  constexpr const char* way = "start the program directly, and call launch() before anything else";
  if (runtime::launcher().size.value_or(1) > 1 || runtime::launcher().rank) {
    throw UsageError({.what = text::concat("launch() was called in a rank that ", to_string(runtime::launcher().kind),
                                           " has started"),
                      .why = "it starts ranks itself",
                      .hint = "start the program directly, or call the function in place of launch()"});
  }
  if (mpi::is_usable()) {
    throw UsageError({.what = "launch() was called after MPI had started",
                      .why = "the ranks would be started from within a job of one",
                      .hint = way});
  }
  if (machine::is_in_use()) {
    throw UsageError({.what = text::concat("launch() was called after this process had used a ",
                                           machine::accelerator_kind()->title, " device"),
                      .why = "it would hold memory of the device that the ranks need",
                      .hint = way});
  }
}

int run_command(const std::vector<std::string>& text, const std::vector<std::string>& variables) {
  std::vector<char*> arguments;
  for (const auto& word : text) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (char** one = environ; *one != nullptr; ++one) environment.push_back(*one);
  for (const auto& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, arguments.front(), nullptr, nullptr, arguments.data(), environment.data());
  if (problem != 0) {
    throw Error({.what = text::concat("launch() could not start `", text.front(), "`: ", std::strerror(problem)),
                 .hint = "put the folder of the command `hortator` on PATH"});
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error({.what = text::concat("launch() lost its ranks: ", std::strerror(errno))});
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void launch(int ranks, const std::function<void()>& function) {
  static int calls = 0;
  const int call = ++calls;
  const auto wanted = core::number(core::process_variables(), call_variable).value_or(0);
  if (call < wanted) return;  // it is over, well
  if (call == wanted) {
    auto program = own_arguments().front();
    char* text[] = {program.data(), nullptr};
    std::exit(run(1, text, function));
  }
  check_may_launch(ranks);
  std::vector<std::string> text = {command(), "launch", "-n", std::to_string(ranks)};
  for (auto& word : own_arguments()) text.push_back(std::move(word));
  const int code = run_command(text, {text::concat(call_variable, '=', call)});
  if (code == 0) return;
  throw Error({.what = text::concat("A function on ", text::count(ranks, "rank"), " ended with exit code ", code),
               .hint = "the lines above, and failure.json in the run folder, name the rank and its problem"});
}

}  // namespace hortator
