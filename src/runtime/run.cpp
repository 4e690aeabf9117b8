#include <cstdlib>
#include <exception>
#include <hortator/error.hpp>
#include <hortator/run.hpp>
#include <string_view>

#include "mpi/environment.hpp"
#include "mpi/rehearsed_world.hpp"
#include "runtime/compatibility.hpp"
#include "runtime/ending/early_end.hpp"
#include "runtime/ending/failure.hpp"
#include "runtime/ending/last_signal.hpp"
#include "runtime/ending/late_failure.hpp"
#include "runtime/ending/stop_signal.hpp"
#include "runtime/identity/outcome.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator {
namespace {

// Called for exceptions that leave a thread or a noexcept function.
[[noreturn]] void on_terminate() {
  const auto thrown = std::current_exception();
  runtime::report(thrown ? runtime::describe(thrown)
                         : runtime::Failure{.problem = "std::terminate was called", .kind = "terminate"});
  mpi::abort_job(EXIT_FAILURE);
}

// A rank without peers exits. Any other aborts the job, since its peers may wait for it for ever.
int end_job(const std::exception_ptr& thrown) {
  const auto failure = runtime::describe(thrown);
  runtime::report(failure);
  if (runtime::current_run().world_size > 1 && !mpi::rehearsed_world()) mpi::abort_job(failure.exit_code);
  mpi::finalize_if_ours();
  return failure.exit_code;
}

// A program that only prints its options is not a run: it must not replace the outcome of one.
bool asks_for_help(int argc, char** argv) { return argc == 2 && std::string_view(argv[1]) == "--help"; }

bool came_to_its_end(const std::function<void()>& body) {
  try {
    body();
    return true;
  } catch (const runtime::EarlyEnd&) {  // on all ranks
    return false;
  }
}

}  // namespace

int run(int argc, char** argv, const std::function<void()>& body, const BuiltWith& built) {
  runtime::survive_minutes_signal();
  std::set_terminate(on_terminate);
  try {
    runtime::forget_late_failure();
    runtime::begin_run(argc > 0 ? argv[0] : "program", asks_for_help(argc, argv));
    if (!runtime::current_run().is_question) runtime::record_crashes();
    runtime::check_program(built);
    const bool is_whole = came_to_its_end(body);
    runtime::throw_late_failure();
    // No rank fails after this point. A launcher ends all ranks once the first has exited with a nonzero code.
    const double joules = mpi::arrive_at_end(runtime::noted_energy().joules);
    if (is_whole) runtime::write_outcome(joules);
    const int code = runtime::was_stopped() ? runtime::exit_code_of_stop() : EXIT_SUCCESS;
    mpi::finalize_if_ours();
    return code;
  } catch (...) {
    return end_job(std::current_exception());
  }
}

}  // namespace hortator
