#include <cstdlib>
#include <hortator/error.hpp>
#include <hortator/launch.hpp>
#include <hortator/run.hpp>
#include <string>
#include <vector>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "mpi/environment.hpp"
#include "runtime/identity/launcher.hpp"
#include "runtime/identity/own_command.hpp"

namespace hortator {
namespace {

// The call for which the ranks were started: a program may launch several functions one after the other.
constexpr const char* call_variable = "HORTATOR_LAUNCH_CALL";

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

}  // namespace

void launch(int ranks, const std::function<void()>& function) {
  static int calls = 0;
  const int call = ++calls;
  const auto wanted = core::number(core::process_variables(), call_variable).value_or(0);
  if (call < wanted) return;  // it is over, well
  if (call == wanted) {
    auto program = runtime::own_arguments().front();
    char* text[] = {program.data(), nullptr};
    std::exit(run(1, text, function));
  }
  check_may_launch(ranks);
  std::vector<std::string> command = {runtime::hortator_command(), "launch", "-n", std::to_string(ranks)};
  for (auto& argument : runtime::own_arguments()) command.push_back(std::move(argument));
  auto variables = runtime::own_environment();
  variables.push_back(text::concat(call_variable, '=', call));
  const int code = runtime::run_to_end(command, variables);
  if (code == 0) return;
  throw Error({.what = text::concat("A function on ", text::count(ranks, "rank"), " ended with exit code ", code),
               .hint = "the lines above, and failure.json in the run folder, name the rank and its problem"});
}

}  // namespace hortator
